package buckettest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
)

// RunCut checks that no request reaches a store while the way to it is cut, whatever is asked, and that it is reached
// again afterwards.
func RunCut(t *testing.T, config bucket.Config) {
	t.Helper()
	config.Way = bucket.NewWay()
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	const name = "cut/object"
	if err := b.Put(t.Context(), name, []byte("before")); err != nil {
		t.Fatal(err)
	}
	config.Way.Cut()
	for what, ask := range map[string]func(context.Context) error{
		"a write":    func(ctx context.Context) error { return b.Put(ctx, name, []byte("meanwhile")) },
		"a creation": func(ctx context.Context) error { return b.Create(ctx, "cut/other", []byte("meanwhile")) },
		"a read":     func(ctx context.Context) error { _, err := b.Get(ctx, name); return err },
		"a listing": func(ctx context.Context) (failed error) {
			for _, err := range b.List(ctx, "cut/") {
				failed = err
			}
			return failed
		},
		"a deletion": func(ctx context.Context) error { return b.Delete(ctx, name) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s on a way that is cut: %v", what, err)
		}
		cancel()
	}
	config.Way.Restore()
	body, err := b.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); err != nil || string(text) != "before" {
		t.Errorf("afterwards it has %q: %v", text, err)
	}
	if err := b.Create(t.Context(), "cut/other", []byte("afterwards")); err != nil {
		t.Errorf("what was created meanwhile got there: %v", err)
	}
}
