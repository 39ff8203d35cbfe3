package transfer

import (
	"context"
	"errors"
	"io"
	"iter"

	"toban.dev/internal/archive/format"
)

// result is what came of an object.
type result[T any] struct {
	value T
	err   error
}

// Ordered reads objects side by side and gives what comes of them in order. At most workers+1 are in memory.
type Ordered[T any] struct {
	ctx     context.Context //nolint:containedctx // that of the reading: io.Reader has no room for one
	waiting chan chan result[T]
}

// ReadOrdered begins; it ends with ctx, or when all is read.
func ReadOrdered[T any](
	ctx context.Context, objects iter.Seq2[format.Object, error], workers int,
	read func(context.Context, format.Object) (T, error),
) *Ordered[T] {
	o := &Ordered[T]{ctx: ctx, waiting: make(chan chan result[T], max(workers-1, 0))}
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

// Next is what came of the next object, io.EOF after the last.
func (o *Ordered[T]) Next() (value T, err error) {
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

// InOrder are the contents of objects, one after the other: an io.Reader.
type InOrder struct {
	*Ordered[[]byte]
	rest   []byte
	failed error // the first error, io.EOF is none
}

// Read implements io.Reader.
func (o *InOrder) Read(p []byte) (n int, err error) {
	for len(o.rest) == 0 {
		if o.rest, err = o.Next(); err != nil {
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

// Because is why reading has failed, where somebody in between says only that something is cut off.
func (o *InOrder) Because(err error) error {
	if o.failed != nil {
		return o.failed
	}
	return err
}

// Each are objects that are known.
func Each(objects []format.Object) iter.Seq2[format.Object, error] {
	return func(yield func(format.Object, error) bool) {
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}
