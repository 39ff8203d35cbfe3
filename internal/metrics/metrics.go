// Package metrics has every metric of the operator, in one place, so that the
// list is the documentation. It knows kinds, and no controller.
package metrics

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
	"toban.dev/internal/room"
)

// Metrics are the operator's own, besides those of controller-runtime.
type Metrics struct {
	stopped   *prometheus.GaugeVec
	wanted    *prometheus.GaugeVec
	ready     *prometheus.GaugeVec
	primary   *prometheus.GaugeVec
	condition *prometheus.GaugeVec
	reason    *prometheus.GaugeVec
	decisions *prometheus.CounterVec
	acts      *prometheus.GaugeVec

	lagBytes, lagSeconds, earliest, lastBackup, lastVerified *prometheus.GaugeVec

	volumeSize, volumeUsed, volumeFills, volumeFull, keptWAL *prometheus.GaugeVec

	lock  sync.Mutex
	shown map[types.NamespacedName][]metav1.Condition // those that condition and reason have
	// volumes are the instances of which the room is shown.
	volumes map[types.NamespacedName][]string
}

// New makes the metrics and registers them.
func New(registry prometheus.Registerer) *Metrics {
	of := []string{"namespace", "sampledb"}
	m := &Metrics{
		shown: map[types.NamespacedName][]metav1.Condition{}, volumes: map[types.NamespacedName][]string{},
		stopped: gauge("toban_sampledb_stopped",
			"1 while a SampleDB is stopped by its spec, else 0.", of...),
		wanted: gauge("toban_sampledb_instances_wanted",
			"Instances that the spec of a SampleDB asks for.", of...),
		ready: gauge("toban_sampledb_instances_ready",
			"Instances that are ready, as their agents report.", of...),
		primary: gauge("toban_sampledb_primary_known",
			"1 when an instance is known to take writes, else 0.", of...),
		condition: gauge("toban_sampledb_condition",
			"A condition of a SampleDB: 1 true, 0 false, -1 unknown.", append(of, "type")...),
		reason: gauge("toban_sampledb_condition_reason",
			"1; its labels have the reason that a condition of a SampleDB has now.", append(of, "type", "reason")...),
		lagBytes: gauge("toban_sampledb_archive_lag_bytes",
			"WAL of the primary that is not in the archive yet.", of...),
		lagSeconds: gauge("toban_sampledb_archive_lag_seconds",
			"How long that WAL has waited for the archive.", of...),
		earliest: gauge("toban_sampledb_restorable_since_timestamp_seconds",
			"The earliest moment from which every later one can be restored.", of...),
		lastBackup: gauge("toban_sampledb_last_backup_timestamp_seconds",
			"When the last complete backup ended.", of...),
		lastVerified: gauge("toban_sampledb_last_verified_timestamp_seconds",
			"When a backup was last verified by restoring it.", of...),
		volumeSize: gauge("toban_sampledb_volume_size_bytes",
			"How much the file system of an instance's volume can hold.", append(of, "instance")...),
		volumeUsed: gauge("toban_sampledb_volume_used_bytes",
			"How much of it is used.", append(of, "instance")...),
		volumeFills: gauge("toban_sampledb_volume_fills_bytes_per_day",
			"By how much it fills a day; missing while that is not known.", append(of, "instance")...),
		volumeFull: gauge("toban_sampledb_volume_full_in_days",
			"In how many days it is full at that rate; missing where it is not known or does not fill.",
			append(of, "instance")...),
		keptWAL: gauge("toban_sampledb_kept_wal_bytes",
			"WAL that the primary keeps for a replication slot; missing for slots that keep less than 32 MiB.",
			append(of, "slot")...),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toban_restart_decisions_total",
			Help: "Decisions whether an instance restarts, by what was decided and why.",
		}, []string{"action", "reason"}),
		acts: gauge("toban_operator_acts",
			"1 if this operator acts for a shard of the databases, else 0. There is one for each shard that it knows of.",
			"shard"),
	}
	registry.MustRegister(m.decisions, m.acts)
	for _, g := range m.gauges() {
		registry.MustRegister(g)
	}
	return m
}

// gauges are those of a SampleDB.
func (m *Metrics) gauges() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{
		m.stopped, m.wanted, m.ready, m.primary, m.condition, m.reason, m.lagBytes, m.lagSeconds,
		m.earliest, m.lastBackup, m.lastVerified, m.volumeSize, m.volumeUsed, m.volumeFills, m.volumeFull, m.keptWAL,
	}
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Observe shows the status of a SampleDB. Of one that is stopped nothing is shown that an alert could be made of.
func (m *Metrics) Observe(db *v1.SampleDB, status v1.SampleDBStatus) {
	if status.Stop.Closed() && db.DeletionTimestamp == nil {
		m.Forget(db.Namespace, db.Name)
		m.stopped.WithLabelValues(db.Namespace, db.Name).Set(1)
		m.ready.WithLabelValues(db.Namespace, db.Name).Set(float64(status.ReadyInstances))
		return
	}
	m.stopped.WithLabelValues(db.Namespace, db.Name).Set(0)
	m.wanted.WithLabelValues(db.Namespace, db.Name).Set(float64(db.Spec.Instances))
	m.ready.WithLabelValues(db.Namespace, db.Name).Set(float64(status.ReadyInstances))
	known := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable) {
		known = 1
	}
	m.primary.WithLabelValues(db.Namespace, db.Name).Set(known)
	m.observeConditions(types.NamespacedName{Namespace: db.Namespace, Name: db.Name}, status.Conditions)
	m.observeArchive(db, status.Backup)
}

// observeConditions shows the conditions, and takes away those that were shown and are not in the status any more.
func (m *Metrics) observeConditions(of types.NamespacedName, conditions []metav1.Condition) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, was := range m.shown[of] {
		now := meta.FindStatusCondition(conditions, was.Type)
		if now == nil {
			m.condition.DeleteLabelValues(of.Namespace, of.Name, was.Type)
		}
		if now == nil || now.Reason != was.Reason {
			m.reason.DeleteLabelValues(of.Namespace, of.Name, was.Type, was.Reason)
		}
	}
	for _, c := range conditions {
		m.condition.WithLabelValues(of.Namespace, of.Name, c.Type).Set(value(c.Status))
		m.reason.WithLabelValues(of.Namespace, of.Name, c.Type, c.Reason).Set(1)
	}
	m.shown[of] = slices.Clone(conditions)
}

// observeArchive shows what is known of the archive, nil for nothing.
func (m *Metrics) observeArchive(db *v1.SampleDB, b *v1.BackupStatus) {
	if b == nil {
		m.lagBytes.DeleteLabelValues(db.Namespace, db.Name)
		m.lagSeconds.DeleteLabelValues(db.Namespace, db.Name)
		b = &v1.BackupStatus{}
	} else {
		m.lagBytes.WithLabelValues(db.Namespace, db.Name).Set(float64(b.LagBytes))
		m.lagSeconds.WithLabelValues(db.Namespace, db.Name).Set(float64(b.LagSeconds))
	}
	for g, at := range map[*prometheus.GaugeVec]*metav1.Time{
		m.earliest: b.Earliest, m.lastBackup: b.LastBackupAt, m.lastVerified: b.LastVerifiedAt,
	} {
		if at == nil {
			g.DeleteLabelValues(db.Namespace, db.Name)
			continue
		}
		g.WithLabelValues(db.Namespace, db.Name).Set(float64(at.Unix()))
	}
}

// ObserveVolumes shows how full the volumes of a SampleDB are, by instance. Of one that is silent nothing is shown:
// what it said last may be long ago.
func (m *Metrics) ObserveVolumes(db *v1.SampleDB, rooms map[string]protocol.Room) {
	m.lock.Lock()
	defer m.lock.Unlock()
	of := types.NamespacedName{Namespace: db.Namespace, Name: db.Name}
	for _, instance := range m.volumes[of] {
		if _, known := rooms[instance]; !known {
			m.hideVolume(of, instance)
		}
	}
	m.volumes[of] = nil
	for instance, r := range rooms {
		m.volumes[of] = append(m.volumes[of], instance)
		m.volumeSize.WithLabelValues(of.Namespace, of.Name, instance).Set(float64(r.Size))
		m.volumeUsed.WithLabelValues(of.Namespace, of.Name, instance).Set(float64(r.Used))
		if r.PerDay == nil {
			m.volumeFills.DeleteLabelValues(of.Namespace, of.Name, instance)
			m.volumeFull.DeleteLabelValues(of.Namespace, of.Name, instance)
			continue
		}
		m.volumeFills.WithLabelValues(of.Namespace, of.Name, instance).Set(float64(*r.PerDay))
		if in, never := room.FullIn(r.Size-r.Used, *r.PerDay); never {
			m.volumeFull.DeleteLabelValues(of.Namespace, of.Name, instance)
		} else {
			m.volumeFull.WithLabelValues(of.Namespace, of.Name, instance).Set(in.Hours() / 24)
		}
	}
}

func (m *Metrics) hideVolume(of types.NamespacedName, instance string) {
	for _, g := range []*prometheus.GaugeVec{m.volumeSize, m.volumeUsed, m.volumeFills, m.volumeFull} {
		g.DeleteLabelValues(of.Namespace, of.Name, instance)
	}
}

// ObserveKeptWAL shows for which slots the primary of a SampleDB keeps much WAL: nothing where that is not known.
func (m *Metrics) ObserveKeptWAL(db *v1.SampleDB, kept *protocol.KeptWAL) {
	m.keptWAL.DeletePartialMatch(prometheus.Labels{"namespace": db.Namespace, "sampledb": db.Name})
	if kept == nil {
		return
	}
	for _, slot := range kept.Slots {
		m.keptWAL.WithLabelValues(db.Namespace, db.Name, slot.Name).Set(float64(slot.Bytes))
	}
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
	delete(m.volumes, types.NamespacedName{Namespace: namespace, Name: name})
	of := prometheus.Labels{"namespace": namespace, "sampledb": name}
	for _, g := range m.gauges() {
		g.DeletePartialMatch(of)
	}
}
