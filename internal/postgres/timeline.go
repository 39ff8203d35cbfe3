package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A timeline begins where a standby was promoted. Its file <TLI>.history has a
// line for each timeline before it: number, LSN at which it was left, reason
// (PostgreSQL 17 documentation, 25.3.6; timeline.c).

func (s *Server) wal() string { return filepath.Join(s.Data(), "pg_wal") }

// Fork is the LSN at which a timeline begins, "0/0" for the first. It is an
// error when its history is not there, as before it has been received.
func (s *Server) Fork(timeline uint32) (lsn string, err error) {
	if timeline <= 1 {
		return "0/0", nil
	}
	text, err := os.ReadFile(filepath.Join(s.wal(), fmt.Sprintf("%08X.history", timeline)))
	if err != nil {
		return "", fmt.Errorf("read where timeline %d begins: %w", timeline, err)
	}
	lsn, err = lastFork(string(text))
	if err != nil {
		return "", fmt.Errorf("read where timeline %d begins: %w", timeline, err)
	}
	return lsn, nil
}

// Branch is the LSN at which the history of a timeline left an earlier one. Where it never was on that, it is where the
// timeline begins. Between the two lie those of promotions that were cut short.
func (s *Server) Branch(timeline, earlier uint32) (lsn string, err error) {
	begins, err := s.history(timeline)
	if err != nil {
		return "", err
	}
	at := begins[len(begins)-1].lsn
	if i := slices.IndexFunc(begins, func(b begin) bool { return b.timeline == earlier }); i >= 0 && i+1 < len(begins) {
		at = begins[i+1].lsn
	}
	return formatLSN(at), nil
}

// ForkFrom is the first LSN at or after one at which the history of a timeline goes on to another timeline. Where there
// is none, it is where the timeline begins.
func (s *Server) ForkFrom(timeline uint32, from uint64) (lsn string, err error) {
	begins, err := s.history(timeline)
	if err != nil {
		return "", err
	}
	at := begins[len(begins)-1].lsn
	for _, b := range begins[1:] {
		if b.lsn >= from {
			at = min(at, b.lsn)
		}
	}
	return formatLSN(at), nil
}

func formatLSN(lsn uint64) string { return fmt.Sprintf("%X/%X", lsn>>32, lsn&0xFFFFFFFF) }

var historyLine = regexp.MustCompile(`^\s*(\d+)\s+([0-9A-Fa-f]+/[0-9A-Fa-f]+)`)

// lastFork is the LSN in the last line of a history.
func lastFork(text string) (string, error) {
	lines, err := parseHistory(text)
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return "", errors.New("the history is empty")
	}
	return formatLSN(lines[len(lines)-1].lsn), nil
}

// Files in pg_wal that are of a timeline: its history, and its WAL, of which the
// end of an abandoned one may be .partial.
var timelineFile = regexp.MustCompile(`^([0-9A-F]{8})(\.history|[0-9A-F]{16}(\.partial)?)$`)

// ForgetTimelines removes what pg_wal has of timelines after the given one:
// histories and WAL. A former, abandoned timeline may bear the same number as a
// new one; its WAL then would be replayed in the new one's place. The server
// must not run, and its data must not be of such a timeline.
func (s *Server) ForgetTimelines(after uint32) error {
	entries, err := os.ReadDir(s.wal())
	if err != nil {
		return fmt.Errorf("forget the timelines after %d: %w", after, err)
	}
	for _, entry := range entries {
		if timeline, ok := timelineOf(entry.Name()); !ok || timeline <= after {
			continue
		}
		if err := os.Remove(filepath.Join(s.wal(), entry.Name())); err != nil {
			return fmt.Errorf("forget the timelines after %d: %w", after, err)
		}
	}
	return syncFolder(s.wal())
}

// HasTimelines says whether pg_wal has anything of timelines after the given one.
func (s *Server) HasTimelines(after uint32) (bool, error) {
	entries, err := os.ReadDir(s.wal())
	if err != nil {
		return false, fmt.Errorf("look for timelines after %d: %w", after, err)
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		timeline, ok := timelineOf(entry.Name())
		return ok && timeline > after
	}), nil
}

// ForgetSuperseded removes the WAL files of former timelines whose segment a later timeline of the history has a
// file for, too: each promotion copies the segment that it happens in, and PostgreSQL keeps all of these
// files for as long as it keeps WAL of their position. With many promotions and few writes they fill
// the volume. A standby needs them which is still on one of those timelines: it streams from the file of the next
// one (WalSndSegmentOpen in walsender.c). So all have to be on the current timeline.
func (s *Server) ForgetSuperseded(current uint32) (removed int, err error) {
	begins, err := s.history(current)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(s.wal())
	if err != nil {
		return 0, fmt.Errorf("forget superseded WAL: %w", err)
	}
	there := map[string]bool{}
	for _, entry := range entries {
		there[entry.Name()] = true
	}
	for name := range there {
		timeline, isFile := timelineOf(name)
		if start, ok := segmentStart(name); !ok || !isFile || !there[superseder(begins, timeline, name[8:], start)] {
			continue
		}
		if err := os.Remove(filepath.Join(s.wal(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return removed, fmt.Errorf("forget superseded WAL: %w", err)
		}
		removed++
	}
	return removed, nil
}

// begin is where a timeline begins.
type begin struct {
	timeline uint32
	lsn      uint64
}

// history are the timelines that lead to one, the oldest first, with that at the end.
func (s *Server) history(timeline uint32) ([]begin, error) {
	var out []begin
	if timeline > 1 {
		text, err := os.ReadFile(filepath.Join(s.wal(), fmt.Sprintf("%08X.history", timeline)))
		if err != nil {
			return nil, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
		}
		if out, err = parseHistory(string(text)); err != nil {
			return nil, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
		}
	}
	// A line has where its timeline was left, which is where the next one begins.
	begins := []begin{{}}
	for i, b := range out {
		begins[i].timeline = b.timeline
		begins = append(begins, begin{lsn: b.lsn})
	}
	begins[len(begins)-1].timeline = timeline
	return begins, nil
}

// parseHistory reads the lines of a history file: timelines, and where they were left.
func parseHistory(text string) ([]begin, error) {
	var out []begin
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match := historyLine.FindStringSubmatch(line)
		if match == nil {
			return nil, fmt.Errorf("the history has a line %q", line)
		}
		timeline, err := strconv.ParseUint(match[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the history has a line %q: %w", line, err)
		}
		lsn, err := parseLSN(match[2])
		if err != nil {
			return nil, fmt.Errorf("the history has a line %q: %w", line, err)
		}
		out = append(out, begin{uint32(timeline), lsn})
	}
	return out, nil
}

func parseLSN(text string) (uint64, error) {
	high, low, _ := strings.Cut(text, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	if err != nil {
		return 0, err
	}
	l, err := strconv.ParseUint(low, 16, 32)
	return h<<32 | l, err
}

// walSegment is the size of a WAL file in bytes: initdb's default, which ours never changes.
const walSegment = 16 << 20

// segmentStart is where a WAL file begins, by its name.
func segmentStart(name string) (uint64, bool) {
	if len(name) != 24 {
		return 0, false
	}
	high, err := strconv.ParseUint(name[8:16], 16, 32)
	low, err2 := strconv.ParseUint(name[16:], 16, 32)
	return high<<32 + low*walSegment, err == nil && err2 == nil
}

// superseder is the WAL file that PostgreSQL reads in the place of a timeline's: that of the newest timeline
// which begins in or before the segment (XLogFileReadAnyTLI in xlogrecovery.c). "" where it is no later one.
func superseder(begins []begin, timeline uint32, segment string, start uint64) string {
	for _, b := range slices.Backward(begins) {
		if b.lsn < start+walSegment {
			if b.timeline <= timeline {
				return ""
			}
			return fmt.Sprintf("%08X%s", b.timeline, segment)
		}
	}
	return ""
}

// timelineOf is the timeline of a file's name in pg_wal.
func timelineOf(name string) (timeline uint32, ok bool) {
	match := timelineFile.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(match[1], 16, 32)
	return uint32(n), err == nil
}
