package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"toban.dev/internal/archive/bucket"
)

// ErrInjected is what a test has a bucket fail with.
var ErrInjected = errors.New("the bucket is away")

// Stored is an object, and when it got there.
type Stored struct {
	Content  []byte
	Modified time.Time
}

// Memory is a bucket in memory. Each call asks Fault what to do.
type Memory struct {
	Mutex   sync.Mutex
	Objects map[string]Stored
	Clock   time.Time
	Changed int // how often an object was written whose name had one
	// Fault is asked before and after what a call does; an error is returned.
	Fault func(after bool) error
}

// NewMemory makes one without objects, which never fails.
func NewMemory() *Memory {
	return &Memory{
		Objects: map[string]Stored{}, Clock: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		Fault: func(bool) error { return nil },
	}
}

func (m *Memory) do(ctx context.Context, what func() error) error {
	m.Mutex.Lock()
	defer m.Mutex.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := m.Fault(false); err != nil {
		return err
	}
	if err := what(); err != nil {
		return err
	}
	return m.Fault(true)
}

// Put implements bucket.Bucket.
func (m *Memory) Put(ctx context.Context, name string, content []byte) error {
	return m.do(ctx, func() error {
		if _, ok := m.Objects[name]; ok {
			m.Changed++
		}
		m.Objects[name] = Stored{bytes.Clone(content), m.Clock}
		return nil
	})
}

// Create implements bucket.Bucket.
func (m *Memory) Create(ctx context.Context, name string, content []byte) error {
	return m.do(ctx, func() error {
		if _, ok := m.Objects[name]; ok {
			return fmt.Errorf("create %s: %w", name, bucket.ErrExists)
		}
		m.Objects[name] = Stored{bytes.Clone(content), m.Clock}
		return nil
	})
}

// Get implements bucket.Bucket.
func (m *Memory) Get(ctx context.Context, name string) (r io.ReadCloser, err error) {
	err = m.do(ctx, func() error {
		o, ok := m.Objects[name]
		if !ok {
			return fmt.Errorf("get %s: %w", name, bucket.ErrNotExist)
		}
		r = io.NopCloser(bytes.NewReader(o.Content))
		return nil
	})
	return r, err
}

// List implements bucket.Bucket.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return m.ListAfter(ctx, prefix, "")
}

// ListAfter implements bucket.Bucket.
func (m *Memory) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		var found []bucket.Object
		err := m.do(ctx, func() error {
			for name, o := range m.Objects {
				if name > after && strings.HasPrefix(name, prefix) {
					found = append(found, bucket.Object{Name: name, Size: int64(len(o.Content)), Modified: o.Modified})
				}
			}
			return nil
		})
		slices.SortFunc(found, func(a, b bucket.Object) int { return strings.Compare(a.Name, b.Name) })
		for i, o := range found {
			if err != nil && i == len(found)/2 {
				break // some were listed before the error
			}
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(bucket.Object{}, err)
		}
	}
}

// Delete implements bucket.Bucket.
func (m *Memory) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := m.do(ctx, func() error { delete(m.Objects, name); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Without gives the same objects, and no failures.
func (m *Memory) Without() *Memory {
	m.Mutex.Lock()
	defer m.Mutex.Unlock()
	calm := NewMemory()
	calm.Objects, calm.Clock = maps.Clone(m.Objects), m.Clock
	return calm
}
