package backup

import (
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// A backup says the term that the archive knew when it began. Where a database had been restored in place a moment
// before, that was one of the branch that was left, of which the backup is nothing.
func TestABackupWithATermOfTheBranchThatWasLeftIsOfTheOther(t *testing.T) {
	left := []ha.TermStart{{Term: 1, Timeline: 1}}
	fork := wal.LSN(3*wal.SegmentSize + 0x2080)
	on := []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 1002, LSN: fork, Timeline: 2}}
	c := Catalogue{Terms: map[uint64]*Term{1: {TermHistory: left}, 1002: {TermHistory: on}}}
	b := Backup{ID: "b", Term: 1, StartLSN: fork + 0x100, StopLSN: fork + 0x200, StartTimeline: 2, StopTimeline: 2}
	if c.In(b, left) || !c.In(b, on) {
		t.Errorf("it is of the branch that was left: %v, of the other: %v", c.In(b, left), c.In(b, on))
	}
	b.StopLSN, b.StartTimeline, b.StopTimeline = fork-0x100, 1, 1
	if !c.In(b, left) || !c.In(b, on) {
		t.Errorf("one from before they parted is of the one: %v, of the other: %v", c.In(b, left), c.In(b, on))
	}
}
