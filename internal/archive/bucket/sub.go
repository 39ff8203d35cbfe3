package bucket

import (
	"context"
	"io"
	"iter"
	"strings"
)

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
