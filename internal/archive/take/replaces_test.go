package take

import (
	"errors"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
)

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
