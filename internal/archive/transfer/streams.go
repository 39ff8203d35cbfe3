package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

const (
	// leastStreams and mostStreams are how many pieces are under way at least and at most, where there is memory, by
	// two for each processor: while one waits for the store or the disk, another is compressed. More make nothing
	// faster but a store that is slow, and take fresh memory, which costs time itself.
	leastStreams, mostStreams = 4, 16
	// streamMemory is what a piece may take while it is under way, in bytes, with what Go has not collected yet.
	streamMemory = 200 << 20
)

// Streams is how many pieces a backup or a restore has under way at the same time: two for each processor, from four to
// sixteen, if they fit into a quarter of the memory that is free, and into half of what the container may have.
func Streams() int {
	limit, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // without a limit it is "max"
	return streams(runtime.GOMAXPROCS(0), availableMemory(), limit)
}

// streams is Streams for so many processors, so much free memory, and the text of a cgroup's memory.max.
func streams(processors int, free uint64, limit []byte) int {
	most := min(max(2*processors, leastStreams), mostStreams)
	// A small machine has its processors busy nevertheless.
	most = min(most, max(int(min(free/4/streamMemory, mostStreams)), min(processors, leastStreams)))
	if allowed, err := strconv.ParseUint(string(bytes.TrimSpace(limit)), 10, 64); err == nil {
		most = min(most, max(int(min(allowed/2/streamMemory, mostStreams)), 1))
	}
	return most
}

// availableMemory is how much a machine has free without swapping, in bytes (Linux' proc_meminfo(5)); 0 where it does
// not say.
func availableMemory() uint64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "MemAvailable:" {
			kib, _ := strconv.ParseUint(string(fields[1]), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// Download reads an object, of at most limit bytes.
func Download(ctx context.Context, from bucket.Bucket, name string, limit int64) (stored []byte, err error) {
	err = Patiently(ctx, func() error {
		r, err := from.Get(ctx, name)
		if errors.Is(err, bucket.ErrNotExist) {
			return &format.ObjectError{Name: name, What: format.Missing}
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		defer r.Close()
		var buffer bytes.Buffer
		if _, err := buffer.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		stored = buffer.Bytes()
		return nil
	})
	return stored, err
}
