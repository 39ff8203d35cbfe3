package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// Parameters are the settings of the PostgreSQL servers: the user's over
// defaults that fit the memory and the volume. PostgreSQL does not mind the case of
// a name; here it is always lower.
func Parameters(db *v1.SampleDB) map[string]string {
	size, err := Size(db)
	if err != nil {
		// The CRD refuses it; and the storage phase reports it.
		size = resource.MustParse("1Gi")
	}
	out := defaults(memory(db.Spec.Resources), size.Value())
	if db.Spec.Storage.WAL != nil {
		wal, err := WALVolume.Size(db)
		if err != nil {
			wal = resource.MustParse("1Gi")
		}
		maps.Copy(out, walDefaults(wal.Value()))
	}
	if MostReaders(db) > fewReaders {
		// Fifty more, each as a standby: the number may change then without a restart.
		out["max_wal_senders"], out["max_replication_slots"] = "120", "70"
	}
	if backup := Backup(db); backup != nil && backup.Incremental != nil {
		out["summarize_wal"] = "on" // what has changed since a backup is read from the summaries
	}
	for _, name := range sortedKeys(db.Spec.PostgreSQL.Parameters) {
		out[strings.ToLower(name)] = string(db.Spec.PostgreSQL.Parameters[name])
	}
	return out
}

func sortedKeys(m map[string]v1.ParameterValue) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// memory is what an instance may use, in bytes: its limit, else what it
// requests; 0 where neither is given.
func memory(r corev1.ResourceRequirements) int64 {
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok {
		return limit.Value()
	}
	if request, ok := r.Requests[corev1.ResourceMemory]; ok {
		return request.Value()
	}
	return 0
}

// defaults fit a server to its memory (bytes, 0 when unknown) and volume (bytes).
func defaults(memory, volume int64) map[string]string {
	out := map[string]string{
		"max_connections": "100",
		// Eight standbys, each with one connection to stream and one to be cloned by.
		"max_wal_senders":       "20",
		"max_replication_slots": "20",

		// A checkpoint is due when this much WAL is written; a tenth of the volume
		// leaves room for the data and for the bursts that exceed it.
		"max_wal_size": size(clamp(volume/10, 32*mib, 8*gib)),
		"min_wal_size": size(clamp(volume/40, 32*mib, gib)),
		// pg_rewind needs the former primary's WAL back to where the histories part.
		"wal_keep_size": size(clamp(volume/20, 16*mib, gib)),
		// A standby that is gone must not fill the primary's volume: past this it
		// loses its slot and is cloned anew.
		"max_slot_wal_keep_size": size(max(volume/4, 64*mib)),

		// How soon a standby tries again when the primary was away; the default of
		// 5 s is what a restarted primary would wait for its standbys.
		"wal_retrieve_retry_interval": "250ms",

		// On a network volume a read costs as much wherever the page lies.
		"random_page_cost": "1.1",
		// What a person needs to find a slow or stuck statement.
		"log_checkpoints":             "on",
		"log_lock_waits":              "on",
		"log_autovacuum_min_duration": "10s",
		"log_min_duration_statement":  "10s",
		// Who it was, in every line: an inquiry needs it.
		"log_line_prefix":          "%m [%p] db=%d,user=%u,app=%a,client=%h ",
		"log_replication_commands": "on", // who copies the data
		"track_io_timing":          "on",
		// Keeps a dead client from holding its locks for two hours.
		"tcp_keepalives_idle":     "60",
		"tcp_keepalives_interval": "10",
		"tcp_keepalives_count":    "6",
	}
	if memory == 0 {
		out["shared_buffers"] = "128MB"
		return out
	}
	// The quarter and three quarters that PostgreSQL's documentation advises.
	out["shared_buffers"] = size(max(memory/4, 16*mib))
	out["effective_cache_size"] = size(max(memory/4*3, 32*mib))
	out["maintenance_work_mem"] = size(clamp(memory/16, 16*mib, 2*gib))
	return out
}

// walDefaults fit the limits of WAL to a volume of its own (bytes), on which nothing else is. Together they leave the
// room that is to be free.
func walDefaults(volume int64) map[string]string {
	return map[string]string{
		"max_wal_size":           size(clamp(volume/5, 32*mib, 8*gib)),
		"min_wal_size":           size(clamp(volume/20, 32*mib, gib)),
		"wal_keep_size":          size(clamp(volume/10, 16*mib, gib)),
		"max_slot_wal_keep_size": size(max(volume/5*2, 64*mib)),
	}
}

func clamp(n, low, high int64) int64 { return min(max(n, low), high) }

// size writes bytes as PostgreSQL does, in whole megabytes.
func size(bytes int64) string { return fmt.Sprintf("%dMB", bytes/mib) }
