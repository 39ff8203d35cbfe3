package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Moment is something that has happened to a database.
type Moment struct {
	At metav1.Time `json:"at"`
	// Topic is failover, switchover, backup, proof, upgrade, drill, restore, change, restart, stop, warning or other.
	Topic   string `json:"topic"`
	Warning bool   `json:"warning,omitempty"`
	// Reason is that of the event or the condition, and Message its words.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Times is how often it was told, if more than once.
	Times int32 `json:"times,omitempty"`
}

// The topics of moments.
const (
	topicFailover   = "failover"
	topicSwitchover = "switchover"
	topicBackup     = "backup"
	topicProof      = "proof"
	topicUpgrade    = "upgrade"
	topicDrill      = "drill"
	topicRestore    = "restore"
	topicChange     = "change"
	topicRestart    = "restart"
	topicStop       = "stop"
	topicOther      = "other"
)

// topics are those of the operator's events (internal/operator/sampledb/world/events.go).
var topics = map[string]string{
	"PrimaryChanged": topicFailover, "NoPrimary": topicFailover, "NotPromoted": topicFailover,
	"PrimaryReady": topicFailover, "Switchover": topicSwitchover, "SwitchoverRefused": topicSwitchover,
	"PreferredPrimary": topicSwitchover, "Backup": topicBackup, "BackupOverdue": topicBackup, "Drill": topicDrill,
	"Restoring": topicRestore, "Restored": topicRestore, "DataLost": topicRestore,
	"ConfigurationApplied": topicChange, "ConfigurationRejected": topicChange, "Scaling": topicChange,
	"Replacing": topicChange, "PodResized": topicChange, "Resizing": topicChange, "Resized": topicChange,
	"ReplacingVolume": topicChange, "VolumesNotReplaced": topicChange,
	"ResizeRefused": topicChange, "Growing": topicChange, "Restarting": topicRestart, "Restarted": topicRestart,
	"RestartRefused": topicRestart, "Stopped": topicStop, "Started": topicStop, "Sleeping": topicStop,
	"Woken": topicStop,
}

// mostMoments is how long a timeline is at most.
const mostMoments = 200

// timelineOf is what has happened, the latest first: from events, which Kubernetes keeps for an hour, and from what
// objects remember for longer.
func timelineOf(db *v1.SampleDB, seen Seen) []Moment {
	out := []Moment{}
	for i := range seen.Events {
		out = append(out, momentOf(&seen.Events[i]))
	}
	out = append(out, backupMoments(seen.Backups)...)
	out = append(out, restoreMoments(seen.Restores)...)
	out = append(out, drillMoments(seen.Drills)...)
	out = append(out, untold(out, statusMoments(db))...)
	out = append(out, specMoments(db)...)
	slices.SortStableFunc(out, func(a, b Moment) int { return b.At.Compare(a.At.Time) })
	return out[:min(len(out), mostMoments)]
}

// sameMoment is how far apart an event and what a status remembers of it may be.
const sameMoment = 5 * time.Second

// untold are the moments of a status that no event tells of.
func untold(told, remembered []Moment) []Moment {
	return slices.DeleteFunc(remembered, func(m Moment) bool {
		return slices.ContainsFunc(told, func(e Moment) bool {
			return e.Reason == m.Reason && e.At.Sub(m.At.Time).Abs() <= sameMoment
		})
	})
}

func momentOf(e *corev1.Event) Moment {
	topic := topics[e.Reason]
	if topic == "" && (strings.HasPrefix(e.Reason, "Up") || e.Reason == "Rehearsed") {
		topic = topicUpgrade
	}
	m := Moment{At: lastTold(e), Topic: cmp.Or(topic, topicOther), Reason: e.Reason, Message: e.Message,
		Warning: e.Type == corev1.EventTypeWarning}
	if times := max(e.Count, seriesCount(e)); times > 1 {
		m.Times = times
	}
	return m
}

func seriesCount(e *corev1.Event) int32 {
	if e.Series == nil {
		return 0
	}
	return e.Series.Count
}

// lastTold is when an event was told last; it has several fields for that, by who has written it.
func lastTold(e *corev1.Event) metav1.Time {
	times := []time.Time{e.CreationTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	return metav1.NewTime(slices.MaxFunc(times, time.Time.Compare))
}

func backupMoments(all []v1.DatabaseBackup) (out []Moment) {
	for i := range all {
		b := &all[i]
		if end := b.Status.CompletedAt; end != nil {
			out = append(out, ended(*end, topicBackup, b.Name, b.Status.Conditions))
		}
		if p := proofOf(b); p.At != nil {
			out = append(out, Moment{At: *p.At, Topic: topicProof, Reason: v1.ConditionVerified,
				Message: b.Name + ": " + p.Message, Warning: p.Is == "refuted"})
		}
	}
	return out
}

func restoreMoments(all []v1.DatabaseRestore) (out []Moment) {
	for _, r := range all {
		if r.Status.CompletedAt != nil {
			out = append(out, ended(*r.Status.CompletedAt, topicRestore, r.Name, r.Status.Conditions))
		}
	}
	return out
}

func drillMoments(all []v1.FaultDrill) (out []Moment) {
	for _, d := range all {
		if s := d.Status; s.StruckAt != nil {
			out = append(out, Moment{At: *s.StruckAt, Topic: topicDrill, Reason: d.Faults(),
				Message: d.Name + ": " + d.Instances()})
		}
		if d.Status.CompletedAt != nil {
			out = append(out, ended(*d.Status.CompletedAt, topicDrill, d.Name, d.Status.Conditions))
		}
	}
	return out
}

// ended is the end of what the condition Complete is about, or, for a drill, Passed.
func ended(at metav1.Time, topic, name string, conditions []metav1.Condition) Moment {
	c := meta.FindStatusCondition(conditions, v1.ConditionPassed)
	if c == nil {
		c = meta.FindStatusCondition(conditions, v1.ConditionComplete)
	}
	if c == nil {
		return Moment{At: at, Topic: topic, Message: name}
	}
	return Moment{At: at, Topic: topic, Reason: c.Reason, Message: name + ": " + c.Message,
		Warning: c.Status != metav1.ConditionTrue}
}

// statusMoments are what a status remembers.
func statusMoments(db *v1.SampleDB) (out []Moment) {
	add := func(at *metav1.Time, topic, reason, message string) {
		if at != nil && !at.IsZero() {
			out = append(out, Moment{At: *at, Topic: topic, Reason: reason, Message: message})
		}
	}
	created, s := db.CreationTimestamp, db.Status
	add(&created, topicOther, "Created", "")
	add(s.InitializedAt, topicOther, "Initialized", "")
	if c := meta.FindStatusCondition(s.Conditions, v1.ConditionAvailable); c != nil {
		since := c.LastTransitionTime
		add(&since, topicFailover, c.Reason, c.Message)
	}
	if u := s.Upgrade; u != nil {
		add(u.CompletedAt, topicUpgrade, u.Step, fmt.Sprintf("%d → %d: %s", u.From, u.To, u.Message))
	}
	if r := s.Restart; r.Ended() {
		add(r.CompletedAt, topicRestart, r.Step, r.Message)
	}
	if c := meta.FindStatusCondition(s.Conditions, v1.ConditionRestored); c != nil {
		since := c.LastTransitionTime
		add(&since, topicRestore, c.Reason, c.Message)
	}
	if s.Storage != nil {
		add(s.Storage.GrownAt, topicChange, "Growing", s.Storage.Size)
	}
	return out
}

// specMoments are when the spec was last changed, by each program that has changed it: Kubernetes keeps that.
func specMoments(db *v1.SampleDB) (out []Moment) {
	for _, f := range db.ManagedFields {
		if f.Time == nil || f.Subresource != "" || f.FieldsV1 == nil ||
			!strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) || f.Time.Equal(&db.CreationTimestamp) {
			continue
		}
		out = append(out, Moment{At: *f.Time, Topic: topicChange, Reason: "SpecChanged", Message: f.Manager})
	}
	return out
}
