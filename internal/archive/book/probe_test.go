package book

import (
	"errors"
	"testing"

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
	if err := format.Claim(t.Context(), b, format.Owner{UID: "two", SystemIdentifier: "1"}); !errors.Is(err,
		format.ErrTaken) {
		t.Errorf("another's: %v", err)
	}
}
