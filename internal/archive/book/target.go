package book

import (
	"strconv"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// Target is where a recovery ends: at the one that is set, or at the end of the
// archive where none is.
type Target struct {
	// Time is of the last commit that is wanted.
	Time time.Time
	LSN  wal.LSN
	XID  string
	// Name is that of pg_create_restore_point.
	Name string
	// Immediate ends as soon as the data is consistent: it is as it was when the backup ended.
	Immediate bool
	// Exclusive stops before the time, the LSN or the XID, not after it.
	Exclusive bool
}

// Latest says that the target is the end of the archive.
func (t Target) Latest() bool {
	return t.Time.IsZero() && t.LSN == 0 && t.XID == "" && t.Name == "" && !t.Immediate
}

// String is for people.
func (t Target) String() string {
	switch {
	case !t.Time.IsZero():
		return "time " + t.Time.UTC().Format(format.TimeFormat)
	case t.LSN != 0:
		return "LSN " + t.LSN.String()
	case t.XID != "":
		return "transaction " + t.XID
	case t.Name != "":
		return "restore point " + strconv.Quote(t.Name)
	case t.Immediate:
		return "the end of the backup"
	}
	return "the end of the archive"
}
