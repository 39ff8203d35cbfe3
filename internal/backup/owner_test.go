package backup

import (
	"context"
	"errors"
	"testing"
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
