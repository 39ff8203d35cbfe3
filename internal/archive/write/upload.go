package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// How much is compressed and written at the same time.
const (
	// archiveMemory bounds what all that is under way takes, in bytes.
	archiveMemory = 192 << 20
	// encodeMemory is what one segment takes until it is compressed, and encrypted if need be: the segment, 16 MiB;
	// what it is compressed to, at most 17 MiB, and half of a segment more while that grows; and where it is encrypted,
	// as much again. Then it takes as much as is left to write. Usual WAL is compressed to less than half.
	encodeMemory = 60 << 20
	// mostUploads is how many segments are under way at most, however well they can be compressed.
	mostUploads = 32
)

// upload is a piece that is being archived.
type upload struct {
	piece format.Piece
	done  chan error
}

// archiveSegments archives the complete segments before the one with the number end, side by side. The position moves
// over them in their order. What was written before an error is not lost: it is found to be there.
func (a *Archiver) archiveSegments(ctx context.Context, end uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first error
	var pending []upload
	number := a.next
	for first == nil && number < end || len(pending) > 0 {
		if first == nil && number < end && len(pending) < mostUploads {
			pending = append(pending, a.begin(ctx, a.rest(number)))
			number++
			continue
		}
		next := pending[0]
		pending = pending[1:]
		err := <-next.done
		switch {
		case err == nil:
			a.own[next.piece] = true
			if first == nil {
				a.advance(next.piece.Segment.Number + 1)
			}
		case first == nil:
			first = err
			cancel()
		}
	}
	return first
}

// begin archives a piece at the side, unless it is in the own folder.
func (a *Archiver) begin(ctx context.Context, p format.Piece) upload {
	u := upload{p, make(chan error, 1)}
	if p.From == p.To {
		u.done <- nil
		return u
	}
	go func() { u.done <- a.archive(ctx, p) }()
	return u
}

// encode is a piece as it is to lie in the bucket. The WAL itself need not be kept while that is on its way.
func (f *termFolder) encode(p format.Piece) ([]byte, error) {
	content, err := f.readWAL(p)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	encoded, err := f.Encoder.EncodeStamped(content, f.stamp(p.String(), content))
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", p, err)
	}
	return trimmed(encoded), nil
}

// archive writes a piece, as soon as there is room for it in memory.
func (a *Archiver) archive(ctx context.Context, p format.Piece) error {
	if err := a.memory.Acquire(ctx, encodeMemory); err != nil {
		return err
	}
	taken := int64(encodeMemory)
	defer func() { a.memory.Release(taken) }()
	encoded, err := a.encode(p)
	if err != nil {
		return err
	}
	left := min(int64(cap(encoded)), taken)
	a.memory.Release(taken - left)
	taken = left
	err = a.Bucket.Create(ctx, a.name(p), encoded)
	if errors.Is(err, bucket.ErrExists) {
		return a.compareWAL(ctx, p, a.name(p))
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", a.name(p), err)
	}
	return nil
}

// trimmed is content without the room that was left behind it, where that is much.
func trimmed(content []byte) []byte {
	if len(content) < cap(content)/2 {
		return bytes.Clone(content)
	}
	return content
}

// create writes something small whose content does not change. It is not encrypted.
func (f *termFolder) create(ctx context.Context, plain string, content []byte) error {
	name := f.folder + plain + format.EndCompressed
	err := f.Bucket.Create(ctx, name, f.Encoder.Compress(content))
	if errors.Is(err, bucket.ErrExists) {
		return f.compare(ctx, name, plain, content)
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return nil
}
