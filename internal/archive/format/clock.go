package format

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"toban.dev/internal/wal"
)

// ClockNote says that the WAL of a term's leader ended at an LSN when its clock showed a time. It is the name of an
// object in the term's folder. The times that a store has of its objects say when they got there: in a copied archive
// that is much later, and a moment without WAL would seem to have some.
type ClockNote struct {
	// Began says that it is the first that the leader knows of its term.
	Began bool
	LSN   wal.LSN
	At    time.Time
}

// beganPrefix and reachedPrefix begin the names of notes of clocks.
const (
	beganPrefix   = "began-"
	reachedPrefix = "reached-"
)

// clockFormat is as exact as the times of commits.
const clockFormat = "20060102T150405.000000Z"

var clockName = regexp.MustCompile(`^(began-|reached-)([0-9A-F]{16})-([0-9]{8}T[0-9]{6}\.[0-9]{6}Z)$`)

// Name is that of the note in a term's folder.
func (n ClockNote) Name() string {
	prefix := reachedPrefix
	if n.Began {
		prefix = beganPrefix
	}
	return fmt.Sprintf("%s%016X-%s", prefix, uint64(n.LSN), n.At.UTC().Format(clockFormat))
}

// ParseClockNote is the note of which that is the name; false for any other name.
func ParseClockNote(name string) (ClockNote, bool) {
	m := clockName.FindStringSubmatch(name)
	if m == nil {
		return ClockNote{}, false
	}
	lsn, _ := strconv.ParseUint(m[2], 16, 64) // the expression has seen to it
	at, err := time.Parse(clockFormat, m[3])
	return ClockNote{m[1] == beganPrefix, wal.LSN(lsn), at}, err == nil
}
