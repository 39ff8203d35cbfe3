package backup

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/bucket"
	"toban.dev/internal/ha"
)

// hour is one of a day.
func hour(h int) time.Time { return time.Date(2026, 11, 20, h, 0, 0, 0, time.UTC) }

// chooseFrom is an archive of two terms: the second continues the first from 0/5000100 on. WAL of segments 3 to 6 was
// written at 4 to 7 o'clock, backups ended at 3 (b3) and 5 (b5); what the first term wrote beyond was not continued.
func chooseFrom() Catalogue {
	c := Catalogue{Terms: map[uint64]*Term{
		1: {TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}}},
		2: {TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 2, LSN: 0x5000100, Timeline: 2}}},
	}}
	add := func(term uint64, timeline uint32, number uint64) {
		s := Segment{timeline, number}
		c.Terms[term].WAL = append(c.Terms[term].WAL,
			WAL{Piece{s, 0, SegmentSize}, bucket.Object{Name: s.String(), Modified: hour(int(number) + 1)}})
	}
	for number := uint64(3); number < 6; number++ {
		add(1, 1, number)
	}
	add(2, 2, 5)
	add(2, 2, 6)
	for _, at := range []int{3, 5} {
		lsn := ha.LSN(at) * SegmentSize
		c.Backups = append(c.Backups, Backup{
			ID: fmt.Sprintf("b%d", at), Type: TypeFull, Term: 1, StartLSN: lsn + 0x28, StopLSN: lsn + 0x100,
			Started: hour(at), Stopped: hour(at),
		})
	}
	return c
}

func TestWhatIsChosenToRestoreFrom(t *testing.T) {
	for name, c := range map[string]struct {
		want   Wanted
		backup string
		to     ha.LSN
	}{
		"the end":                                {Wanted{}, "b5", 0x7000000},
		"a time between the backups":             {Wanted{Target: Target{Time: hour(4)}}, "b3", 0x7000000},
		"a time after the last WAL":              {Wanted{Target: Target{Time: hour(20)}}, "b5", 0x7000000},
		"now":                                    {Wanted{Target: Target{Time: hour(22)}}, "b5", 0x7000000},
		"the future":                             {Wanted{Target: Target{Time: hour(23)}}, "", 0},
		"a time before the first backup":         {Wanted{Target: Target{Time: hour(2)}}, "", 0},
		"an LSN before the second backup's stop": {Wanted{Target: Target{LSN: 0x50000F0}}, "b3", 0x7000000},
		"an LSN beyond the end":                  {Wanted{Target: Target{LSN: 0x7000001}}, "", 0},
		"a transaction":                          {Wanted{Target: Target{XID: "7"}}, "b3", 0x7000000},
		"a named point with a backup":            {Wanted{Target: Target{Name: "x"}, Backup: "b5"}, "b5", 0x7000000},
		"a backup as it was": {
			Wanted{Target: Target{Immediate: true}, Backup: "b3"}, "b3", 0x3000100,
		},
		"a backup that is too late":  {Wanted{Target: Target{Time: hour(4)}, Backup: "b5"}, "", 0},
		"a backup that is not there": {Wanted{Target: Target{Immediate: true}, Backup: "b9"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Now = hour(22)
			got, err := chooseFrom().Choose(c.want)
			if c.backup == "" {
				if !errors.Is(err, ErrOutside) ||
					!strings.Contains(err.Error(), "b9") && !strings.Contains(err.Error(), "2026-11-20T03:00:00Z") {
					t.Errorf("chose %s, %v", got.Backup.ID, err)
				}
				return
			}
			if err != nil || got.Backup.ID != c.backup || got.To != c.to {
				t.Errorf("chose %s to %s, %v; want %s to %s", got.Backup.ID, got.To, err, c.backup, c.to)
			}
		})
	}
	// With a gap at the end nobody knows what was written after it.
	gap := chooseFrom()
	gap.Terms[2].WAL[1].Piece.Segment.Number = 8
	if got, err := gap.Choose(Wanted{Target: Target{Time: hour(20)}, Now: hour(22)}); err == nil {
		t.Errorf("chose %s beyond a gap", got.Backup.ID)
	}
}
