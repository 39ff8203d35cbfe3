package backup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"toban.dev/internal/archive/bucket"
)

// careless is a bucket that replaces what it should leave.
type careless struct{ *memoryBucket }

func (c careless) Create(ctx context.Context, name string, content []byte) error {
	return c.Put(ctx, name, content)
}

func TestAnArchiveIsClaimedWhereWritersAreKeptApart(t *testing.T) {
	owner := Owner{UID: "one", SystemIdentifier: "1"}
	m := newMemoryBucket()
	if err := Claim(t.Context(), careless{m}, owner); !errors.Is(err, ErrReplaces) || len(m.objects) > 0 {
		t.Errorf("%v, and there is %v", err, m.objects)
	}
	if err := Claim(t.Context(), m, owner); err != nil || len(m.objects) != 1 {
		t.Errorf("%v, and there is %v", err, m.objects)
	}
	// One that was claimed is not tried again: a lost leader may be writing.
	before := len(m.objects)
	m.fault = func(after bool) error {
		if after && len(m.objects) != before {
			t.Error("something is written into an archive that is claimed")
		}
		return nil
	}
	if err := Claim(t.Context(), m, owner); err != nil {
		t.Error(err)
	}
	if err := Claim(t.Context(), m, Owner{UID: "two", SystemIdentifier: "1"}); !errors.Is(err, ErrTaken) {
		t.Errorf("another's: %v", err)
	}
	// Whatever fails on the way, it is claimed afterwards.
	for n := range 12 {
		m, calls := newMemoryBucket(), 0
		m.fault = func(bool) error {
			if calls++; calls == n {
				return errInjected
			}
			return nil
		}
		err := Claim(t.Context(), m, owner)
		if err != nil && !errors.Is(err, errInjected) {
			t.Errorf("call %d: %v", n, err)
		}
		m.fault = func(bool) error { return nil }
		if err := Claim(t.Context(), m, owner); err != nil {
			t.Errorf("after call %d: %v", n, err)
		}
	}
}

// locked is a bucket that lets nothing be replaced or removed.
type locked struct{ *memoryBucket }

func (l locked) Put(ctx context.Context, name string, content []byte) error {
	if err := l.Create(ctx, name, content); err != nil {
		return fmt.Errorf("%w: %w", bucket.ErrDenied, err)
	}
	return nil
}

func (l locked) Delete(context.Context, ...string) error {
	return fmt.Errorf("by its policy: %w", bucket.ErrDenied)
}

func TestAnArchiveIsClaimedWhereNothingCanBeRemoved(t *testing.T) {
	b, owner := locked{newMemoryBucket()}, Owner{UID: "one", SystemIdentifier: "1"}
	for range 3 {
		if err := Claim(t.Context(), b, owner); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.objects) != 2 {
		t.Errorf("there is %v, not archive.json and one probe", b.objects)
	}
	catalogue, err := Read(t.Context(), b)
	if err != nil || len(catalogue.Unread) > 0 {
		t.Errorf("the probe is in the way: %+v, %v", catalogue, err)
	}
	if err := Claim(t.Context(), b, Owner{UID: "two", SystemIdentifier: "1"}); !errors.Is(err, ErrTaken) {
		t.Errorf("another's: %v", err)
	}
}

// A backup replaces no object, not even its own whose answer was lost.
func TestABackupReplacesNothing(t *testing.T) {
	m := newMemoryBucket()
	lost := 2
	m.fault = func(after bool) error {
		if after && lost > 0 {
			lost--
			return errInjected
		}
		return nil
	}
	x := taking{TakeOptions: TakeOptions{Bucket: locked{m}}, backup: Backup{ID: "b"}}
	if _, err := x.store(t.Context(), "base.tar.00000.zst", []byte("piece")); err != nil {
		t.Errorf("an answer was lost: %v", err)
	}
	if _, err := x.store(t.Context(), "base.tar.00000.zst", []byte("other")); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("another's piece: %v", err)
	}
	if m.changed > 0 || x.backup.StoredBytes != int64(len("piece")) {
		t.Errorf("%d objects were replaced, and %d bytes stored", m.changed, x.backup.StoredBytes)
	}
}
