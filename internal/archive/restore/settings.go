package restore

import (
	"fmt"
	"maps"
	"strconv"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// Settings are the parameters with which a server recovers to the target along a timeline.
// Targets that are not meant are not among them, and must not be set elsewhere: even set to nothing, a
// second one takes the first away, or is refused ("multiple recovery targets specified"), as
// their order has it (assign_recovery_target_time and the like).
// The server also needs a file standby.signal, and the files that Prepare puts there
// (PostgreSQL 17 documentation, 19.5.6 and 26.2.2). They go when the recovery has ended.
func Settings(t book.Target, timeline wal.Timeline) (map[string]string, error) {
	all := map[string]string{
		"primary_conninfo": "", "primary_slot_name": "", "restore_command": "", "archive_cleanup_command": "",
		"recovery_end_command": "", "recovery_target_inclusive": strconv.FormatBool(!t.Exclusive),
		"recovery_target_timeline": strconv.FormatUint(uint64(timeline), 10),
		"recovery_target_action":   "promote", "recovery_min_apply_delay": "0",
		"wal_retrieve_retry_interval": "100ms", // how long it takes to notice a file
		"hot_standby":                 "on",    // it is asked how far it is
		// What has been replayed must not come back under the names of segments to come. PostgreSQL 15 to 18
		// do that only after a receiver was started (InstallXLogFileSegmentActive in xlog.c); that is nowhere promised.
		"wal_recycle": "off",
	}
	chosen := map[string]string{}
	if !t.Time.IsZero() {
		chosen["recovery_target_time"] = t.Time.UTC().Format(format.TimeFormat)
	}
	if t.LSN != 0 {
		chosen["recovery_target_lsn"] = t.LSN.String()
	}
	if t.XID != "" {
		chosen["recovery_target_xid"] = t.XID
	}
	if t.Name != "" {
		chosen["recovery_target_name"] = t.Name
	}
	if t.Immediate {
		chosen["recovery_target"] = "immediate"
	}
	if len(chosen) > 1 {
		return nil, fmt.Errorf("there is more than one target of the recovery: %v", chosen)
	}
	maps.Copy(all, chosen)
	return all, nil
}
