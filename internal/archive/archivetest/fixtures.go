package archivetest

import (
	"testing"

	"filippo.io/age"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// SmallSegments makes segments of four pages, so that thousands of histories can be gone through.
func SmallSegments(t testing.TB) {
	format.SegmentSize = 4 * wal.PageSize
	t.Cleanup(func() { format.SegmentSize = wal.SegmentSize })
}

// Keys are for archives that are encrypted.
var Keys = []*age.X25519Identity{NewKey(), NewKey(), NewKey()}

// NewKey makes one more.
func NewKey() *age.X25519Identity {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		panic(err)
	}
	return key
}

// Owner is whose the archives are.
var Owner = format.Owner{UID: "u", Namespace: "n", Name: "db", SystemIdentifier: "7"}
