package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// Timeline is the number of a timeline, from 1 on (TimeLineID in xlogdefs.h). One begins where a standby was promoted
// (PostgreSQL 17 documentation, 25.3.6 Timelines).
type Timeline uint32

// endHistory ends the names of history files.
const endHistory = ".history"

// HistoryFile is the name of a timeline's history file (TLHistoryFileName in xlog_internal.h). The first timeline has
// no such file.
func (t Timeline) HistoryFile() string { return fmt.Sprintf("%08X%s", uint32(t), endHistory) }

// ParseHistoryFile reads the name of a history file (IsTLHistoryFileName in xlog_internal.h); false for any other name.
func ParseHistoryFile(name string) (Timeline, bool) {
	digits, ok := strings.CutSuffix(name, endHistory)
	if !ok || len(digits) != 8 || !onlyHexDigits(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return Timeline(n), err == nil
}

// TimelineOf is the timeline that a file in pg_wal is of, by its name: WAL, the end of the WAL of an abandoned timeline
// (IsPartialXLogFileName in xlog_internal.h), or a history file. False for anything else.
func TimelineOf(name string) (Timeline, bool) {
	if timeline, ok := ParseHistoryFile(name); ok {
		return timeline, true
	}
	if segment := strings.TrimSuffix(name, ".partial"); !isSegmentName(segment) {
		return 0, false
	}
	n, err := strconv.ParseUint(name[:8], 16, 32)
	return Timeline(n), err == nil
}
