package upgrade

import (
	"slices"
	"time"
)

// Major is a major version and the day of its last minor release, zero for one that is not released yet.
type Major struct {
	Number    int
	EndOfLife time.Time
}

// Majors are those that a SampleDB may have, the oldest first. The days are from PostgreSQL's versioning policy
// (https://www.postgresql.org/support/versioning/, "Releases").
var Majors = []Major{
	{15, day(2027, time.November, 11)},
	{16, day(2028, time.November, 9)},
	{17, day(2029, time.November, 8)},
	{18, day(2030, time.November, 14)},
	{Number: 19},
}

// EndOfLifeWarning is how long before its end of life a major is told to be old.
const EndOfLifeWarning = 180 * 24 * time.Hour

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Newest is the newest major version that is released, of those that a SampleDB may have.
func Newest() (newest int) {
	for _, m := range Majors {
		if !m.EndOfLife.IsZero() {
			newest = m.Number
		}
	}
	return newest
}

// Known says that a SampleDB may have a major version, released or not.
func Known(major int) bool {
	return slices.ContainsFunc(Majors, func(m Major) bool { return m.Number == major })
}

// endOfLife is that of a major version, false where the table does not have it.
func endOfLife(major int) (time.Time, bool) {
	for _, m := range Majors {
		if m.Number == major {
			return m.EndOfLife, !m.EndOfLife.IsZero()
		}
	}
	return time.Time{}, false
}
