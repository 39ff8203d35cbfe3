// Package metrics has every metric of the operator, in one place, so that the
// list is the documentation. It knows kinds, and no controller.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Metrics are the operator's own, besides those of controller-runtime.
type Metrics struct {
	wanted    *prometheus.GaugeVec
	ready     *prometheus.GaugeVec
	primary   *prometheus.GaugeVec
	condition *prometheus.GaugeVec
	decisions *prometheus.CounterVec

	lagBytes, lagSeconds, earliest, lastBackup, lastVerified *prometheus.GaugeVec
}

// New makes the metrics and registers them.
func New(registry prometheus.Registerer) *Metrics {
	of := []string{"namespace", "sampledb"}
	m := &Metrics{
		wanted: gauge("toban_sampledb_instances_wanted",
			"Instances that the spec of a SampleDB asks for.", of...),
		ready: gauge("toban_sampledb_instances_ready",
			"Instances that are ready, as their agents report.", of...),
		primary: gauge("toban_sampledb_primary_known",
			"1 when an instance is known to take writes, else 0.", of...),
		condition: gauge("toban_sampledb_condition",
			"A condition of a SampleDB: 1 true, 0 false, -1 unknown.", append(of, "type")...),
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
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toban_restart_decisions_total",
			Help: "Decisions whether an instance restarts, by what was decided and why.",
		}, []string{"action", "reason"}),
	}
	registry.MustRegister(m.decisions)
	for _, g := range m.gauges() {
		registry.MustRegister(g)
	}
	return m
}

// gauges are those of a SampleDB.
func (m *Metrics) gauges() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{
		m.wanted, m.ready, m.primary, m.condition, m.lagBytes, m.lagSeconds, m.earliest, m.lastBackup, m.lastVerified,
	}
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Observe shows the status of a SampleDB.
func (m *Metrics) Observe(db *v1.SampleDB, status v1.SampleDBStatus) {
	m.wanted.WithLabelValues(db.Namespace, db.Name).Set(float64(db.Spec.Instances))
	m.ready.WithLabelValues(db.Namespace, db.Name).Set(float64(status.ReadyInstances))
	known := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable) {
		known = 1
	}
	m.primary.WithLabelValues(db.Namespace, db.Name).Set(known)
	for _, c := range status.Conditions {
		m.condition.WithLabelValues(db.Namespace, db.Name, c.Type).Set(value(c.Status))
	}
	if b := status.Backup; b != nil {
		m.lagBytes.WithLabelValues(db.Namespace, db.Name).Set(float64(b.LagBytes))
		m.lagSeconds.WithLabelValues(db.Namespace, db.Name).Set(float64(b.LagSeconds))
		for g, at := range map[*prometheus.GaugeVec]*metav1.Time{
			m.earliest: b.Earliest, m.lastBackup: b.LastBackupAt, m.lastVerified: b.LastVerifiedAt,
		} {
			if at != nil {
				g.WithLabelValues(db.Namespace, db.Name).Set(float64(at.Unix()))
			}
		}
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

// Decided counts a decision about restarts.
func (m *Metrics) Decided(action, reason string) { m.decisions.WithLabelValues(action, reason).Inc() }

// Forget drops what is shown of a SampleDB that is gone.
func (m *Metrics) Forget(namespace, name string) {
	of := prometheus.Labels{"namespace": namespace, "sampledb": name}
	for _, g := range m.gauges() {
		g.DeletePartialMatch(of)
	}
}
