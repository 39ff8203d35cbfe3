package backup

import (
	"errors"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
)

func TestAnArchiveIsClaimedWhereNothingCanBeRemoved(t *testing.T) {
	b, owner := buckettest.Locked{Memory: buckettest.NewMemory()}, format.Owner{UID: "one", SystemIdentifier: "1"}
	for range 3 {
		if err := format.Claim(t.Context(), b, owner); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.Objects) != 2 {
		t.Errorf("there is %v, not archive.json and one probe", b.Objects)
	}
	catalogue, err := Read(t.Context(), b)
	if err != nil || len(catalogue.Unread) > 0 {
		t.Errorf("the probe is in the way: %+v, %v", catalogue, err)
	}
	if err := format.Claim(t.Context(), b, format.Owner{UID: "two", SystemIdentifier: "1"}); !errors.Is(err, format.ErrTaken) {
		t.Errorf("another's: %v", err)
	}
}

// A backup replaces no object, not even its own whose answer was lost.
func TestABackupReplacesNothing(t *testing.T) {
	m := buckettest.NewMemory()
	lost := 2
	m.Fault = func(after bool) error {
		if after && lost > 0 {
			lost--
			return buckettest.ErrInjected
		}
		return nil
	}
	x := taking{TakeOptions: TakeOptions{Bucket: buckettest.Locked{Memory: m}}, backup: format.Backup{ID: "b"}}
	if _, err := x.store(t.Context(), "base.tar.00000.zst", []byte("piece")); err != nil {
		t.Errorf("an answer was lost: %v", err)
	}
	if _, err := x.store(t.Context(), "base.tar.00000.zst", []byte("other")); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("another's piece: %v", err)
	}
	if m.Changed > 0 || x.backup.StoredBytes != int64(len("piece")) {
		t.Errorf("%d objects were replaced, and %d bytes stored", m.Changed, x.backup.StoredBytes)
	}
}
