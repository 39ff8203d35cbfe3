package archivetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// Hour is one of the day of most tests.
func Hour(h int) time.Time { return time.Date(2026, 11, 20, h, 0, 0, 0, time.UTC) }

// Day is one of the month of most tests.
func Day(d int) time.Time { return time.Date(2026, 11, d, 3, 0, 0, 0, time.UTC) }

// Folder is that of a backup in an archive.
type Folder struct {
	T *testing.T
	// Bucket is rooted at the archive, ID is that of the backup.
	Bucket  bucket.Bucket
	Encoder *format.Encoder
	ID      string
}

// Put puts an object there as it is put when a backup is taken, and is what its backup.json says of it.
func (f Folder) Put(name string, content []byte) format.Object {
	f.T.Helper()
	stored, err := f.Encoder.Encode(content)
	Must(f.T, err)
	sum := sha256.Sum256(stored)
	o := format.Object{Name: f.Encoder.Name(name), Size: int64(len(stored)), SHA256: hex.EncodeToString(sum[:])}
	Must(f.T, f.Bucket.Create(f.T.Context(), format.FolderBase+f.ID+"/"+o.Name, stored))
	return o
}

// PutBackup puts the backup.json of a backup there.
func PutBackup(t *testing.T, to bucket.Bucket, b format.Backup) {
	t.Helper()
	text, err := json.MarshalIndent(b, "", "  ")
	Must(t, err, to.Create(t.Context(), format.FolderBase+b.ID+"/"+format.FileBackup, append(text, '\n')))
}

// Must stops the test where something has failed.
func Must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// WriteManifest writes a manifest as PostgreSQL does, of files of one byte.
func WriteManifest(to io.Writer, files int) error {
	sum := sha256.New()
	out := io.MultiWriter(to, sum)
	fmt.Fprint(out, "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n")
	for i := range files {
		end := ","
		if i == files-1 {
			end = ""
		}
		_, err := fmt.Fprintf(out, "{ \"Path\": \"base/%d/%d\", \"Size\": 1, "+
			"\"Last-Modified\": \"2026-01-%02d %02d:%02d:%02d GMT\", "+
			"\"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"%08x\" }%s\n",
			i/1000, i%1000, i%28+1, i%24, i%60, i*7%60, uint32(i)*2654435761, end)
		if err != nil {
			return err
		}
	}
	fmt.Fprint(out, "],\n\"WAL-Ranges\": [\n{ \"Timeline\": 1, \"Start-LSN\": \"0/28\", \"End-LSN\": \"0/64\" }\n],\n")
	_, err := fmt.Fprintf(to, "\"Manifest-Checksum\": \"%s\"}\n", hex.EncodeToString(sum.Sum(nil)))
	return err
}

// WatchMemory follows how much memory is in use, and gives the most since it was asked before.
func WatchMemory(t *testing.T) (peak func() uint64) {
	t.Helper()
	var most atomic.Uint64
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most.Store(max(most.Load(), m.HeapAlloc))
	}
	tick := time.NewTicker(50 * time.Millisecond)
	done := make(chan struct{})
	t.Cleanup(func() { tick.Stop(); close(done) })
	go func() {
		for {
			select {
			case <-tick.C:
				look()
			case <-done:
				return
			}
		}
	}()
	return func() uint64 {
		look()
		return most.Swap(0)
	}
}

// Measured says how long something takes, and how much memory was in use at most.
func Measured(t *testing.T, peak func() uint64, what string, do func()) {
	t.Helper()
	runtime.GC()
	peak()
	begin := time.Now()
	do()
	took := time.Since(begin)
	t.Logf("%s: %s, at most %d MiB in use", what, took.Round(time.Millisecond), peak()>>20)
}
