package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// download reads an object, of at most limit bytes.
func download(ctx context.Context, from bucket.Bucket, name string, limit int64) (stored []byte, err error) {
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

// readPiece reads a piece of a backup whose folder this is, and opens it.
func readPiece(ctx context.Context, from bucket.Bucket, decoder *format.Decoder, folder string, o format.Object) ([]byte, error) {
	stored, err := readStored(ctx, from, folder, o)
	if err != nil {
		return nil, err
	}
	return format.Decode(decoder, folder+o.Name, stored, format.PieceSize)
}

// readStored reads an object of which size and SHA-256 are known, as it lies in the bucket.
func readStored(ctx context.Context, from bucket.Bucket, folder string, o format.Object) ([]byte, error) {
	name := folder + o.Name
	stored, err := download(ctx, from, name, o.Size)
	if err != nil {
		return nil, err
	}
	if err := o.Check(name, stored); err != nil {
		return nil, err
	}
	return stored, nil
}

// result is what came of an object.
type result[T any] struct {
	value T
	err   error
}

// ordered reads objects side by side and gives what comes of them in order. At most workers+1 are in memory.
type ordered[T any] struct {
	ctx     context.Context //nolint:containedctx // that of the reading: io.Reader has no room for one
	waiting chan chan result[T]
}

// readOrdered begins; it ends with ctx, or when all is read.
func readOrdered[T any](
	ctx context.Context, objects iter.Seq2[format.Object, error], workers int, read func(context.Context, format.Object) (T, error),
) *ordered[T] {
	o := &ordered[T]{ctx: ctx, waiting: make(chan chan result[T], max(workers-1, 0))}
	go func() {
		defer close(o.waiting)
		for object, err := range objects {
			slot := make(chan result[T], 1)
			select {
			case o.waiting <- slot: // waits until the reader has made room
			case <-ctx.Done():
				return
			}
			if err != nil {
				slot <- result[T]{err: err}
				return
			}
			go func() {
				value, err := read(ctx, object)
				slot <- result[T]{value, err}
			}()
		}
	}()
	return o
}

// next is what came of the next object, io.EOF after the last.
func (o *ordered[T]) next() (value T, err error) {
	slot, ok := <-o.waiting
	if err := o.ctx.Err(); err != nil {
		return value, err
	}
	if !ok {
		return value, io.EOF
	}
	r := <-slot
	return r.value, r.err
}

// inOrder are the contents of objects, one after the other: an io.Reader.
type inOrder struct {
	*ordered[[]byte]
	rest   []byte
	failed error // the first error, io.EOF is none
}

// Read implements io.Reader.
func (o *inOrder) Read(p []byte) (n int, err error) {
	for len(o.rest) == 0 {
		if o.rest, err = o.next(); err != nil {
			if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				o.failed = err
			}
			return 0, err
		}
	}
	n = copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// because is why reading has failed, where somebody in between says only that something is cut off.
func (o *inOrder) because(err error) error {
	if o.failed != nil {
		return o.failed
	}
	return err
}

// each are objects that are known.
func each(objects []format.Object) iter.Seq2[format.Object, error] {
	return func(yield func(format.Object, error) bool) {
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}
