package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"

	"toban.dev/internal/archive/bucket"
)

// What is wrong with an object.
const (
	Missing   = "missing"
	Truncated = "truncated"
	Altered   = "altered"
)

// ObjectError says which object of an archive is not what it was when it was written.
type ObjectError struct {
	// Name is that within the archive, What is Missing, Truncated or Altered.
	Name, What string
	// Err is how that was noticed, nil where What says all.
	Err error
}

func (e *ObjectError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s is %s", e.Name, e.What)
	}
	return fmt.Sprintf("%s is %s: %v", e.Name, e.What, e.Err)
}

func (e *ObjectError) Unwrap() error { return e.Err }

// download reads an object, of at most limit bytes.
func download(ctx context.Context, from bucket.Bucket, name string, limit int64) (stored []byte, err error) {
	err = Patiently(ctx, func() error {
		r, err := from.Get(ctx, name)
		if errors.Is(err, bucket.ErrNotExist) {
			return &ObjectError{Name: name, What: Missing}
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
func readPiece(ctx context.Context, from bucket.Bucket, decoder *Decoder, folder string, o Object) ([]byte, error) {
	stored, err := readStored(ctx, from, folder, o)
	if err != nil {
		return nil, err
	}
	return decode(decoder, folder+o.Name, stored, PieceSize)
}

// readStored reads an object of which size and SHA-256 are known, as it lies in the bucket.
func readStored(ctx context.Context, from bucket.Bucket, folder string, o Object) ([]byte, error) {
	name := folder + o.Name
	stored, err := download(ctx, from, name, o.Size)
	if err != nil {
		return nil, err
	}
	if err := o.check(name, stored); err != nil {
		return nil, err
	}
	return stored, nil
}

// check says what is wrong with what lies in the bucket for an object, under its whole name.
func (o Object) check(name string, stored []byte) error {
	switch size := int64(len(stored)); {
	case size < o.Size:
		return &ObjectError{name, Truncated, fmt.Errorf("it has %d of its %d bytes", size, o.Size)}
	case size > o.Size:
		return &ObjectError{name, Altered, fmt.Errorf("it has more than its %d bytes", o.Size)}
	}
	if sum := sha256.Sum256(stored); hex.EncodeToString(sum[:]) != o.SHA256 {
		return &ObjectError{name, Altered, errors.New("its SHA-256 is another one")}
	}
	return nil
}

// decode opens what lies in the bucket, into at most limit bytes: more would not be ours.
func decode(decoder *Decoder, name string, stored []byte, limit int64) ([]byte, error) {
	r, err := decoder.Decode(name, bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var content bytes.Buffer
	content.Grow(int(min(limit, 4*int64(len(stored))+bytes.MinRead)))
	if _, err := content.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, &ObjectError{name, Altered, err}
	}
	if int64(content.Len()) > limit {
		return nil, &ObjectError{name, Altered, fmt.Errorf("it has more than %d bytes", limit)}
	}
	return content.Bytes(), nil
}

// checkWAL says what is wrong with the content of an object of WAL, which is to be all of a piece.
func checkWAL(name string, p Piece, content []byte) error {
	if want := int(p.To - p.From); len(content) != want {
		return &ObjectError{name, Altered, fmt.Errorf("it has %d bytes of WAL, not %d", len(content), want)}
	}
	if at := foreignPage(content, p); at >= 0 {
		return &ObjectError{name, Altered, fmt.Errorf("at byte %d it has WAL of another place", at)}
	}
	return nil
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
	ctx context.Context, objects iter.Seq2[Object, error], workers int, read func(context.Context, Object) (T, error),
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
func each(objects []Object) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}
