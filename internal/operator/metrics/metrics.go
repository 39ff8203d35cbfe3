// Package metrics has every metric of the operator, in one place, so that the
// list is the documentation. It knows kinds, and no controller.
package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/protocol"
)

// Metrics are the operator's own, besides those of controller-runtime.
type Metrics struct {
	decisions *prometheus.CounterVec
	acts      *prometheus.GaugeVec

	stopped, wanted, ready, primary, condition, reason *gauge

	lagBytes, lagSeconds, earliest, lastBackup, lastVerified *gauge

	volumeSize, volumeUsed, volumeFills, volumeFull, keptWAL *gauge

	lock  sync.Mutex
	shown map[types.NamespacedName]*shown
}

const (
	labelNamespace = "namespace"
	labelSampleDB  = "sampledb"
	labelInstance  = "instance"
)

// New makes the metrics and registers them.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		shown: map[types.NamespacedName]*shown{},
		stopped: newGauge("toban_sampledb_stopped",
			"1 while a SampleDB is stopped by its spec, else 0."),
		wanted: newGauge("toban_sampledb_instances_wanted",
			"Instances that the spec of a SampleDB asks for."),
		ready: newGauge("toban_sampledb_instances_ready",
			"Instances that are ready, as their agents report."),
		primary: newGauge("toban_sampledb_primary_known",
			"1 when an instance is known to take writes, else 0."),
		condition: newGauge("toban_sampledb_condition",
			"A condition of a SampleDB: 1 true, 0 false, -1 unknown.", "type"),
		reason: newGauge("toban_sampledb_condition_reason",
			"1; its labels have the reason that a condition of a SampleDB has now.", "type", "reason"),
		lagBytes: newGauge("toban_sampledb_archive_lag_bytes",
			"WAL of the primary that is not in the archive yet."),
		lagSeconds: newGauge("toban_sampledb_archive_lag_seconds",
			"How long that WAL has waited for the archive."),
		earliest: newGauge("toban_sampledb_restorable_since_timestamp_seconds",
			"The earliest moment from which every later one can be restored."),
		lastBackup: newGauge("toban_sampledb_last_backup_timestamp_seconds",
			"When the last complete backup ended."),
		lastVerified: newGauge("toban_sampledb_last_verified_timestamp_seconds",
			"When a backup was last verified by restoring it."),
		volumeSize: newGauge("toban_sampledb_volume_size_bytes",
			"How much the file system of an instance's volume can hold.", labelInstance),
		volumeUsed: newGauge("toban_sampledb_volume_used_bytes",
			"How much of it is used.", labelInstance),
		volumeFills: newGauge("toban_sampledb_volume_fills_bytes_per_day",
			"By how much it fills a day; missing while that is not known.", labelInstance),
		volumeFull: newGauge("toban_sampledb_volume_full_in_days",
			"In how many days it is full at that rate; missing where it is not known or does not fill.",
			labelInstance),
		keptWAL: newGauge("toban_sampledb_kept_wal_bytes",
			"WAL that the primary keeps for a replication slot; missing for slots that keep less than 32 MiB.",
			"slot"),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toban_restart_decisions_total",
			Help: "Decisions whether an instance restarts, by what was decided and why.",
		}, []string{"action", "reason"}),
		acts: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "toban_operator_acts",
			Help: "1 if this operator acts for a shard of the databases, else 0. There is one for each shard that it " +
				"knows of.",
		}, []string{"shard"}),
	}
	registry.MustRegister(m, m.decisions, m.acts)
	return m
}

// gauges are those of a SampleDB.
func (m *Metrics) gauges() []*gauge {
	return []*gauge{
		m.stopped, m.wanted, m.ready, m.primary, m.condition, m.reason, m.lagBytes, m.lagSeconds,
		m.earliest, m.lastBackup, m.lastVerified, m.volumeSize, m.volumeUsed, m.volumeFills, m.volumeFull, m.keptWAL,
	}
}

// Observe shows the status of a SampleDB. Of one that is stopped nothing is shown that an alert could be made of.
func (m *Metrics) Observe(db *v1.SampleDB, status v1.SampleDBStatus) {
	ready := m.ready.is(float64(status.ReadyInstances))
	if status.Stop.Closed() && db.DeletionTimestamp == nil {
		m.change(db.Namespace, db.Name, func(s *shown) { *s = shown{status: []series{m.stopped.is(1), ready}} })
		return
	}
	all := make([]series, 0, few+2*len(status.Conditions))
	all = append(all, m.stopped.is(0), m.wanted.is(float64(db.Spec.Instances)), ready)
	known := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable) {
		known = 1
	}
	all = append(all, m.primary.is(known))
	for _, c := range status.Conditions {
		all = append(all, m.condition.is(value(c.Status), c.Type), m.reason.is(1, c.Type, c.Reason))
	}
	all = append(all, m.ofArchive(status.Backup)...)
	m.change(db.Namespace, db.Name, func(s *shown) { s.status = all })
}

// few is how many series there are of a SampleDB that are not of its conditions, at most.
const few = 9

// ofArchive shows what is known of the archive, nil for nothing.
func (m *Metrics) ofArchive(b *v1.BackupStatus) []series {
	if b == nil {
		return nil
	}
	out := []series{m.lagBytes.is(float64(b.LagBytes)), m.lagSeconds.is(float64(b.LagSeconds))}
	for g, at := range map[*gauge]*metav1.Time{
		m.earliest: b.Earliest, m.lastBackup: b.LastBackupAt, m.lastVerified: b.LastVerifiedAt,
	} {
		if at != nil {
			out = append(out, g.is(float64(at.Unix())))
		}
	}
	return out
}

// ObserveVolumes shows how full the volumes of a SampleDB are, by instance. Of one that is silent nothing is shown:
// what it said last may be long ago.
func (m *Metrics) ObserveVolumes(db *v1.SampleDB, rooms map[string]protocol.Room) {
	var all []series
	for instance, r := range rooms {
		all = append(all, m.volumeSize.is(float64(r.Size), instance), m.volumeUsed.is(float64(r.Used), instance))
		if r.PerDay == nil {
			continue
		}
		all = append(all, m.volumeFills.is(float64(*r.PerDay), instance))
		if in, never := space.FullIn(r.Size-r.Used, *r.PerDay); !never {
			all = append(all, m.volumeFull.is(in.Hours()/24, instance))
		}
	}
	m.change(db.Namespace, db.Name, func(s *shown) { s.volumes = all })
}

// ObserveKeptWAL shows for which slots the primary of a SampleDB keeps much WAL: nothing where that is not known.
func (m *Metrics) ObserveKeptWAL(db *v1.SampleDB, kept *protocol.KeptWAL) {
	var all []series
	if kept != nil {
		for _, slot := range kept.Slots {
			all = append(all, m.keptWAL.is(float64(slot.Bytes), slot.Name))
		}
	}
	m.change(db.Namespace, db.Name, func(s *shown) { s.kept = all })
}

func value(status metav1.ConditionStatus) float64 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	}
	return -1
}

// Waits shows that an operator knows of so many shards, and acts for none of them.
func (m *Metrics) Waits(shards int) {
	for number := range shards {
		m.acts.WithLabelValues(strconv.Itoa(number)).Set(0)
	}
}

// Acts shows that it acts for one of them.
func (m *Metrics) Acts(shard int) { m.acts.WithLabelValues(strconv.Itoa(shard)).Set(1) }

// Decided counts a decision about restarts.
func (m *Metrics) Decided(action, reason string) { m.decisions.WithLabelValues(action, reason).Inc() }

// Forget drops what is shown of a SampleDB that is gone.
func (m *Metrics) Forget(namespace, name string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.shown, types.NamespacedName{Namespace: namespace, Name: name})
}
