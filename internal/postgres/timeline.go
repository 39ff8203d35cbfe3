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

var historyLine = regexp.MustCompile(`^\s*(\d+)\s+([0-9A-Fa-f]+/[0-9A-Fa-f]+)`)

// lastFork is the LSN in the last line of a history.
func lastFork(text string) (string, error) {
	lsn := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match := historyLine.FindStringSubmatch(line)
		if match == nil {
			return "", fmt.Errorf("the history has a line %q", line)
		}
		lsn = match[2]
	}
	if lsn == "" {
		return "", errors.New("the history is empty")
	}
	return lsn, nil
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

// timelineOf is the timeline of a file's name in pg_wal.
func timelineOf(name string) (timeline uint32, ok bool) {
	match := timelineFile.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(match[1], 16, 32)
	return uint32(n), err == nil
}
