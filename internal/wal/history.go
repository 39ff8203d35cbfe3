package wal

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// History is how a timeline came about: what its history file says.
type History struct {
	// Timeline is whose history it is.
	Timeline Timeline
	// Before are the timelines that lead to it, the oldest first; none for the first timeline.
	Before []Left
}

// Left is where a history left a timeline: the next one begins there.
type Left struct {
	Timeline Timeline
	At       LSN
}

var historyLine = regexp.MustCompile(`^\s*(\d+)\s+([0-9A-Fa-f]+/[0-9A-Fa-f]+)`)

// ParseHistory reads the history file of a timeline. It has a line for each timeline before it: number, position at
// which it was left, reason (readTimeLineHistory in timeline.c).
func ParseHistory(timeline Timeline, text string) (History, error) {
	h := History{Timeline: timeline}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, err := parseLeft(line)
		if err != nil {
			return History{}, fmt.Errorf("the history has a line %q: %w", line, err)
		}
		h.Before = append(h.Before, left)
	}
	return h, nil
}

func parseLeft(line string) (Left, error) {
	match := historyLine.FindStringSubmatch(line)
	if match == nil {
		return Left{}, errors.New("it does not begin with a timeline and a WAL position")
	}
	timeline, err := strconv.ParseUint(match[1], 10, 32)
	if err != nil {
		return Left{}, err
	}
	at, err := ParseLSN(match[2])
	return Left{Timeline(timeline), at}, err
}

// Begin is where the timeline begins; 0 where the history has no timeline before it.
func (h History) Begin() LSN {
	if len(h.Before) == 0 {
		return 0
	}
	return h.Before[len(h.Before)-1].At
}

// Left is where the history left a timeline; false where that is no ancestor of the history's.
func (h History) Left(ancestor Timeline) (LSN, bool) {
	i := slices.IndexFunc(h.Before, func(l Left) bool { return l.Timeline == ancestor })
	if i < 0 {
		return 0, false
	}
	return h.Before[i].At, true
}

// Switch is the first position at or after one at which the history goes on to another timeline; false where it does
// not any more.
func (h History) Switch(from LSN) (at LSN, ok bool) {
	for _, l := range h.Before {
		if l.At >= from && (!ok || l.At < at) {
			at, ok = l.At, true
		}
	}
	return at, ok
}

// Newest is the newest timeline of the history that begins before a position: PostgreSQL reads a segment from the file
// of the newest which begins before the segment ends (XLogFileReadAnyTLI in xlogrecovery.c).
func (h History) Newest(before LSN) Timeline {
	newest := h.Timeline
	for _, l := range slices.Backward(h.Before) {
		if l.At < before {
			return newest
		}
		newest = l.Timeline
	}
	return newest
}
