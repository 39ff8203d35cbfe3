package metrics

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
)

// Of DatabaseBackups there is no series for each: a SampleDB gets new ones for ever. There is what became of the last
// one, by what it was asked to do. Who asked for it is no label: a backup by hand that failed a year ago would be shown
// as the last one of its sort until somebody deletes it, although all of the schedule have succeeded since.
var (
	backupCondition = newGauge("toban_databasebackup_condition",
		"Complete of the DatabaseBackup of a SampleDB that has ended last without being cancelled, and Verified of "+
			"the one that was verified last: 1 true, 0 false, -1 unknown.", labelType)
	backupReason = newGauge("toban_databasebackup_condition_reason",
		"1; its labels have the reason that such a condition has now.", labelType, labelReason)
	backupPhase = newGauge("toban_databasebackup_phase",
		"How many DatabaseBackups of a SampleDB are in a phase; missing for none.", "phase")
	backupEnded = newGauge("toban_databasebackup_ended_timestamp_seconds",
		"When the DatabaseBackup of a SampleDB that has ended last did so, complete or not.")
	backupTook = newGauge("toban_databasebackup_duration_seconds",
		"How long the last complete backup of a type has taken.", labelType)
	backupSize = newGauge("toban_databasebackup_size_bytes",
		"How much data it has copied.", labelType)
	backupStored = newGauge("toban_databasebackup_stored_bytes",
		"What it took in the archive when it ended, in whole MiB from 1 MiB on.", labelType)
	backupRecovery = newGauge("toban_databasebackup_recovery_seconds",
		"How long the last verification has taken until the database could have been used: what a restore would take.")
)

// gaugesOfBackups are all of them.
var gaugesOfBackups = []*gauge{
	backupCondition, backupReason, backupPhase, backupEnded, backupTook, backupSize, backupStored, backupRecovery,
}

// lastBackups is what is shown of the DatabaseBackups of a SampleDB.
type lastBackups struct {
	phases map[string]int
	// ended is the one that ended last; complete are those of each type that did so with success; verified is the one
	// that was verified last.
	ended, verified *v1.DatabaseBackup
	complete        map[v1.BackupType]*v1.DatabaseBackup
}

// backupsByDatabase finds them in all.
func backupsByDatabase(all []v1.DatabaseBackup) map[types.NamespacedName]*lastBackups {
	out := map[types.NamespacedName]*lastBackups{}
	for i := range all {
		of := databaseOf(&all[i])
		if out[of] == nil {
			out[of] = &lastBackups{phases: map[string]int{}, complete: map[v1.BackupType]*v1.DatabaseBackup{}}
		}
		out[of].add(&all[i])
	}
	return out
}

func (l *lastBackups) add(b *v1.DatabaseBackup) {
	if b.Status.Phase != "" {
		l.phases[b.Status.Phase]++
	}
	reason := ""
	if c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete); c != nil {
		reason = c.Reason
	}
	if reason != v1.ReasonCancelled {
		l.ended = later(l.ended, b, endOf)
	}
	if reason == v1.ReasonCompleted {
		l.complete[b.Status.Type] = later(l.complete[b.Status.Type], b, endOf)
	}
	if reason != v1.ReasonRemoved { // what was found about data that is gone helps nobody
		l.verified = later(l.verified, b, verifiedAt)
	}
}

func endOf(b *v1.DatabaseBackup) *metav1.Time { return b.Status.CompletedAt }

func verifiedAt(b *v1.DatabaseBackup) *metav1.Time {
	if b.Status.Verification == nil {
		return nil
	}
	return b.Status.Verification.CompletedAt
}

// later is the one of two that has the later moment; one without is none.
func later(a, b *v1.DatabaseBackup, moment func(*v1.DatabaseBackup) *metav1.Time) *v1.DatabaseBackup {
	if at := moment(b); at == nil || a != nil && !moment(a).Before(at) {
		return a
	}
	return b
}

// series are those that are shown.
func (l *lastBackups) series() []series {
	var out []series
	for phase, n := range l.phases {
		out = append(out, backupPhase.is(float64(n), phase))
	}
	if l.ended != nil {
		out = append(out, backupEnded.is(float64(l.ended.Status.CompletedAt.Unix())))
		out = append(out, ofBackup(l.ended, v1.ConditionComplete)...)
	}
	if l.verified != nil {
		out = append(out, ofBackup(l.verified, v1.ConditionVerified)...)
		if took := l.verified.Status.Verification.RecoveryTime; took != nil && took.Duration > 0 {
			out = append(out, backupRecovery.is(took.Seconds()))
		}
	}
	for kind, b := range l.complete {
		out = append(out, ofComplete(b, string(kind))...)
	}
	return out
}

// ofBackup are the series of one condition.
func ofBackup(b *v1.DatabaseBackup, kind string) []series {
	c := meta.FindStatusCondition(b.Status.Conditions, kind)
	if c == nil {
		return nil
	}
	return ofConditions([]metav1.Condition{*c}, backupCondition, backupReason)
}

// ofComplete are the series of a complete backup of a type.
func ofComplete(b *v1.DatabaseBackup, kind string) []series {
	var out []series
	if b.Status.StartedAt != nil {
		out = append(out, backupTook.is(b.Status.CompletedAt.Sub(b.Status.StartedAt.Time).Seconds(), kind))
	}
	if b.Status.Progress != nil {
		out = append(out, backupSize.is(float64(b.Status.Progress.Bytes), kind))
	}
	if stored, err := resource.ParseQuantity(b.Status.StoredSize); err == nil {
		out = append(out, backupStored.is(float64(stored.Value()), kind))
	}
	return out
}
