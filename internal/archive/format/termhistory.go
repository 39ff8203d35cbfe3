package format

import (
	"encoding/json"
	"fmt"
	"slices"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Parting is up to where two term histories have the same WAL, 0 for nowhere. Terms without WAL of their own do not
// matter: a restore in place by a former version left them out of the term history that it began.
func Parting(a, b []ha.TermStart) wal.LSN {
	a, b = UpTo(a, wal.MaxLSN), UpTo(b, wal.MaxLSN)
	n := 0
	for n < min(len(a), len(b)) && a[n].Term == b[n].Term && a[n].LSN == b[n].LSN {
		n++
	}
	if n == 0 {
		return 0
	}
	return min(Cutoff(a, n-1), Cutoff(b, n-1))
}

// TimelineAt is the timeline in the name of a segment. PostgreSQL looks for it under the newest
// timeline of its history that begins in or before it (XLogFileReadAnyTLI in xlogrecovery.c), which is
// also the name under which a new primary goes on with the segment that its timeline begins in.
func TimelineAt(history []ha.TermStart, number uint64) wal.Timeline {
	end := SegmentOf(0, number).End()
	for i := len(history) - 1; i >= 0; i-- {
		// One that began where it was not continued has no WAL.
		if s := history[i]; s.LSN < end && s.LSN < Cutoff(history, i) {
			return s.Timeline
		}
	}
	return history[0].Timeline
}

// lsnText is an LSN that is written as PostgreSQL does.
type lsnText wal.LSN

func (l lsnText) MarshalText() ([]byte, error) { return []byte(wal.LSN(l).String()), nil }

func (l *lsnText) UnmarshalText(text []byte) error {
	lsn, err := wal.ParseLSN(string(text))
	*l = lsnText(lsn)
	return err
}

// termHistoryFile is lineage.json.
type termHistoryFile struct {
	Term   uint64      `json:"term"`
	Starts []startFile `json:"starts"`
}

type startFile struct {
	Term     uint64       `json:"term"`
	LSN      lsnText      `json:"lsn"`
	Timeline wal.Timeline `json:"timeline"`
}

// FormatTermHistory makes lineage.json of a term history.
func FormatTermHistory(starts []ha.TermStart) ([]byte, error) {
	file := termHistoryFile{Term: starts[len(starts)-1].Term}
	for _, s := range starts {
		file.Starts = append(file.Starts, startFile{s.Term, lsnText(s.LSN), s.Timeline})
	}
	text, err := json.Marshal(file)
	return append(text, '\n'), err
}

// ParseTermHistory reads lineage.json, which must be that of a term.
func ParseTermHistory(text []byte, term uint64) ([]ha.TermStart, error) {
	var file termHistoryFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if file.Term != term || len(file.Starts) == 0 || file.Starts[len(file.Starts)-1].Term != term {
		return nil, fmt.Errorf("it is not the term history of term %d", term)
	}
	var starts []ha.TermStart
	for _, s := range file.Starts {
		starts = append(starts, ha.TermStart{Term: s.Term, LSN: wal.LSN(s.LSN), Timeline: s.Timeline})
	}
	return starts, nil
}

// Cutoff is where the WAL of the i-th term of a term history is no longer continued: at the
// first start of a later one. Starts need not be in order (ha.Joins).
func Cutoff(history []ha.TermStart, i int) wal.LSN {
	first := wal.MaxLSN
	for _, s := range history[i+1:] {
		first = min(first, s.LSN)
	}
	return first
}

// BegunBefore is the beginning of a term history, up to the last term that begins before an LSN. Whoever goes on there
// has it with all its terms, also those without WAL of their own: a term history without them would part from others
// where the first of them began.
func BegunBefore(history []ha.TermStart, lsn wal.LSN) []ha.TermStart {
	end := len(history)
	for end > 0 && history[end-1].LSN >= lsn {
		end--
	}
	return slices.Clone(history[:end])
}

// UpTo are the terms of a term history that have WAL of their own before an LSN. They say what the WAL is; term
// histories that differ in other terms have the same.
func UpTo(history []ha.TermStart, lsn wal.LSN) []ha.TermStart {
	var out []ha.TermStart
	for _, s := range slices.Backward(history) {
		if s.LSN < lsn {
			out, lsn = append(out, s), s.LSN // it begins where those before it end
		}
	}
	slices.Reverse(out)
	return out
}
