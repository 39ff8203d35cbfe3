package keep

import (
	"errors"
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
)

// TestUnreadDeletesNothing is invariant 9.
func TestUnreadDeletesNothing(t *testing.T) {
	b := buckettest.NewMemory()
	for name, text := range map[string]string{
		"base/a/backup.json":        `{"id":"a","type":"full","term":1}`,
		"base/b/backup.json":        `{"id":"b","type":"full","term":1,"stopped":"2026-01-01T00:00:00Z"}`,
		"wal/00000001/lineage.json": `{"term":1,"starts":[{"term":1,"lsn":"0/0","timeline":1}]}`, "readme.txt": "",
		"wal/old": "", "base/x": "",
	} {
		_ = b.Put(t.Context(), name, []byte(text))
	}
	policy := Policy{Count: 1, Now: b.Clock}
	c, err := book.Read(t.Context(), b)
	if err != nil || len(c.Strangers) != 3 || len(Retain(c, policy).Names) == 0 {
		t.Fatalf("%+v: %v", c, err)
	}
	for _, name := range []string{"wal/00000001/lineage.json", "base/c/backup.json", format.FileArchive} {
		spoilt := b.Without()
		_ = spoilt.Put(t.Context(), name, []byte("{"))
		if c, err := book.Read(t.Context(), spoilt); err != nil || len(Retain(c, policy).Names) > 0 {
			t.Errorf("%s can't be read: %+v, %v", name, Retain(c, policy), err)
		}
	}
	b.Fault = func(bool) error { return buckettest.ErrInjected }
	if _, err := book.Read(t.Context(), b); !errors.Is(err, buckettest.ErrInjected) {
		t.Error(err)
	}
}
