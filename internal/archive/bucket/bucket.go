// Package bucket is where archives are kept: one small interface over object
// stores and a plain folder. It knows nothing of backups.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// What can be wrong with a bucket. Everything else is worth another try.
var (
	// ErrNotExist says that there is no object of the name.
	ErrNotExist = errors.New("no such object")
	// ErrExists says that there is an object of the name already.
	ErrExists = errors.New("the object exists already")
	// ErrNoBucket says that the bucket itself is not there.
	ErrNoBucket = errors.New("no such bucket")
	// ErrDenied says that the credentials are wrong, or do not allow it.
	ErrDenied = errors.New("access denied")
	// ErrFull says that there is no room.
	ErrFull = errors.New("no space left")
	// ErrInvalid says that the name or the size of an object is not legal.
	ErrInvalid = errors.New("not a legal object")
)

// MaxObject is the size of the largest object, in bytes. Every store takes so
// much in one request.
const MaxObject = 64 << 20

// Object is what a listing says of one.
type Object struct {
	// Name is the whole name within the bucket, with slashes.
	Name string
	// Size is in bytes.
	Size     int64
	Modified time.Time
}

// Bucket holds objects. An object is there whole or not at all; who reads after a
// write sees it. A name is of parts between slashes, which neither begin nor end
// with a dot, and no name is the folder of another. Its methods may be called at the same time, and return errors
// that errors.Is knows by the values above.
type Bucket interface {
	// Put writes an object, replacing one of the same name.
	Put(ctx context.Context, name string, content []byte) error
	// Create writes an object that must not be there yet: of two that try, one
	// gets ErrExists, also where the store denies to replace what is there. Where
	// an answer was lost on the way, an object that has the same content counts as
	// the one that was written: content that says who wrote it tells writers apart.
	Create(ctx context.Context, name string, content []byte) error
	// Get reads an object from its beginning.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List goes through the objects whose names begin with prefix, in the order of
	// their bytes. An error ends it. What others have put there under names that
	// are not legal here is left out.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// ListAfter goes through those of them whose names come after a name, which need not be that of an object.
	// Every store but Azure's begins there; in Azure's, the names before are gone through and left out.
	ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
	// Delete removes objects. One that is not there is no error.
	Delete(ctx context.Context, names ...string) error
}

// Sub roots a bucket in a folder of another: names are those below it. An empty
// prefix is the bucket itself.
func Sub(b Bucket, prefix string) Bucket {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return b
	}
	return sub{b, prefix + "/"}
}

type sub struct {
	bucket Bucket
	// folder ends with a slash.
	folder string
}

func (s sub) Put(ctx context.Context, name string, content []byte) error {
	return s.bucket.Put(ctx, s.folder+name, content)
}

func (s sub) Create(ctx context.Context, name string, content []byte) error {
	return s.bucket.Create(ctx, s.folder+name, content)
}

func (s sub) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return s.bucket.Get(ctx, s.folder+name)
}

func (s sub) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return s.below(s.bucket.List(ctx, s.folder+prefix))
}

func (s sub) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return s.below(s.bucket.ListAfter(ctx, s.folder+prefix, s.folder+after))
}

// below gives a listing the names below the folder.
func (s sub) below(listing iter.Seq2[Object, error]) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for object, err := range listing {
			object.Name = strings.TrimPrefix(object.Name, s.folder)
			if !yield(object, err) {
				return
			}
		}
	}
}

func (s sub) Delete(ctx context.Context, names ...string) error {
	whole := make([]string, len(names))
	for i, name := range names {
		whole[i] = s.folder + name
	}
	return s.bucket.Delete(ctx, whole...)
}

// keeper is a bucket in which nothing is removed. The store is to refuse it too: this is so that nobody asks.
type keeper struct{ Bucket }

func (keeper) Delete(_ context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("delete %s and %d more: %w: only the credentials for deletion may do that",
		names[0], len(names)-1, ErrDenied)
}
