package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// ownMetric is what the agent knows without asking the server.
type ownMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// collect shows what is known: nothing, or one value for each set of labels.
	collect func(s *protocol.Status, show show)
}

type show func(value float64, labels ...string)

// own are the metrics of the instance.
var own = []ownMetric{
	gauge("toban_instance_primary", "1 while the instance is the primary, else 0.",
		func(s *protocol.Status) float64 { return number(s.Role == protocol.RolePrimary) }),
	gauge("toban_instance_standby", "1 while the instance is a standby, else 0.",
		func(s *protocol.Status) float64 { return number(s.Role == protocol.RoleStandby) }),
	gauge("toban_instance_ready", "1 while the instance does what its role asks, as a query has shown, else 0.",
		func(s *protocol.Status) float64 { return number(s.Ready) }),
	gauge("toban_instance_term", "The highest election term that the instance has stored.",
		func(s *protocol.Status) float64 { return float64(s.Term) }),
	gauge("toban_instance_leading", "1 while the instance leads by the last election that it knows of, else 0.",
		func(s *protocol.Status) float64 { return number(s.Election.Leading) }),
	some("toban_instance_timeline", "The timeline of the server's WAL.",
		func(s *protocol.Status) (float64, bool) { return float64(s.Timeline), s.Timeline > 0 }),
	some("toban_instance_wal_position_bytes", "Where the WAL ends that a primary has written, or a standby received.",
		func(s *protocol.Status) (float64, bool) { return position(s.LSN) }),
	some("toban_instance_streaming", "1 while a standby receives WAL from the primary, else 0; of standbys.",
		func(s *protocol.Status) (float64, bool) { return number(s.Streaming), s.Role == protocol.RoleStandby }),
	some("toban_instance_unreplayed_bytes",
		"WAL that a standby has, and has still to replay: it votes, but leads only after that; of standbys.",
		func(s *protocol.Status) (float64, bool) {
			return float64(s.Election.Unreplayed), s.Role == protocol.RoleStandby
		}),
	some("toban_instance_standbys_streaming", "Servers that stream from the primary; of the primary.",
		func(s *protocol.Status) (float64, bool) {
			return float64(len(s.Standbys)), s.Role == protocol.RolePrimary
		}),
	some("toban_instance_voters", "Instances whose acknowledgement and vote count; of the one that leads.",
		func(s *protocol.Status) (float64, bool) { return float64(len(s.Voters)), leads(s) }),
	some("toban_instance_acknowledgements",
		"Instances that must have a commit on disk before it is acknowledged, the primary included; of "+
			"the one that leads.",
		func(s *protocol.Status) (float64, bool) {
			return float64(s.Acknowledgements), leads(s) && s.Acknowledgements > 0
		}),
	cancelledCommits,
	gauge("toban_instance_parameters_pending_restart", "Parameters that wait for a restart of the server.",
		func(s *protocol.Status) float64 { return float64(len(s.PendingRestart)) }),
	some("toban_instance_archive_position_bytes", "Up to where the WAL is in the archive; of the one that leads.",
		func(s *protocol.Status) (float64, bool) {
			if s.Archive == nil {
				return 0, false
			}
			return position(s.Archive.LSN)
		}),
	archive("toban_instance_archive_lag_bytes", "WAL of the primary that is not in the archive yet.",
		func(a *protocol.ArchiveStatus) float64 { return float64(a.LagBytes) }),
	archive("toban_instance_archive_lag_seconds", "How long that WAL has waited for the archive.",
		func(a *protocol.ArchiveStatus) float64 { return a.LagSeconds }),
	archive("toban_instance_archive_failing", "1 while the archive does not take the WAL, else 0.",
		func(a *protocol.ArchiveStatus) float64 { return number(a.Reason != "") }),
	room("toban_instance_volume_size_bytes", "How much the file system of the instance's volume can hold.",
		func(r *protocol.Room) (float64, bool) { return float64(r.Size), true }),
	room("toban_instance_volume_used_bytes", "How much of it is used.",
		func(r *protocol.Room) (float64, bool) { return float64(r.Used), true }),
	room("toban_instance_volume_fills_bytes_per_day", "By how much it fills a day; missing while that is not known.",
		func(r *protocol.Room) (float64, bool) {
			if r.PerDay == nil {
				return 0, false
			}
			return float64(*r.PerDay), true
		}),
	some("toban_instance_wal_volume_size_bytes", "How much the file system of a WAL volume can hold; of who has one.",
		func(s *protocol.Status) (float64, bool) {
			return walRoom(s, func(r protocol.Room) int64 { return r.Size })
		}),
	some("toban_instance_wal_volume_used_bytes", "How much of that is used.",
		func(s *protocol.Status) (float64, bool) {
			return walRoom(s, func(r protocol.Room) int64 { return r.Used })
		}),
	keptWAL,
}

func walRoom(s *protocol.Status, value func(protocol.Room) int64) (float64, bool) {
	if s.WALRoom == nil {
		return 0, false
	}
	return float64(value(*s.WALRoom)), true
}

// cancelledCommits counts: it never goes back while the agent's container runs.
var cancelledCommits = ownMetric{
	desc: prometheus.NewDesc("toban_instance_cancelled_commits_total",
		"Commits that were cancelled while they waited for standbys: they may be on this instance alone.", nil, nil),
	kind:    prometheus.CounterValue,
	collect: func(s *protocol.Status, show show) { show(float64(s.Election.CancelledCommits)) },
}

// keptWAL has a value for each slot that keeps much.
var keptWAL = ownMetric{
	desc: prometheus.NewDesc("toban_instance_kept_wal_bytes",
		"WAL that the primary keeps for a replication slot; missing for slots that keep less than 32 MiB.",
		[]string{"slot"}, nil),
	kind: prometheus.GaugeValue,
	collect: func(s *protocol.Status, show show) {
		if s.KeptWAL == nil {
			return
		}
		for _, slot := range s.KeptWAL.Slots {
			show(float64(slot.Bytes), slot.Name)
		}
	},
}

// leads says that the instance is the primary by an election, and has said who votes.
func leads(s *protocol.Status) bool { return s.Election.Leading && len(s.Voters) > 0 }

func position(text string) (float64, bool) {
	lsn, err := wal.ParseLSN(text)
	return float64(lsn), err == nil
}

func gauge(name, help string, value func(*protocol.Status) float64) ownMetric {
	return some(name, help, func(s *protocol.Status) (float64, bool) { return value(s), true })
}

// some is a gauge that is shown where it is known.
func some(name, help string, value func(*protocol.Status) (float64, bool)) ownMetric {
	return ownMetric{
		desc: prometheus.NewDesc(name, help, nil, nil), kind: prometheus.GaugeValue,
		collect: func(s *protocol.Status, show show) {
			if v, known := value(s); known {
				show(v)
			}
		},
	}
}

func archive(name, help string, value func(*protocol.ArchiveStatus) float64) ownMetric {
	return some(name, help+" Of the one that leads.", func(s *protocol.Status) (float64, bool) {
		if s.Archive == nil {
			return 0, false
		}
		return value(s.Archive), true
	})
}

func room(name, help string, value func(*protocol.Room) (float64, bool)) ownMetric {
	return some(name, help, func(s *protocol.Status) (float64, bool) {
		if s.Room == nil {
			return 0, false
		}
		return value(s.Room)
	})
}
