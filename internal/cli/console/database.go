package console

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Database is all that the page of one database shows, but for the lag, which is asked for apart.
type Database struct {
	Row
	// Unpromoted is why no instance is promoted; nil while one leads or that is not known.
	Unpromoted *Condition `json:"unpromoted,omitempty"`
	// LastPrimary is who led last, while nobody leads.
	LastPrimary string      `json:"lastPrimary,omitempty"`
	Created     metav1.Time `json:"created"`
	Durability  string      `json:"durability"`
	Picture     Picture     `json:"picture"`
	Conditions  []Condition `json:"conditions"`
	Archive     Archive     `json:"archive"`
	Backups     []Backup    `json:"backups"`
	// KnowsBackups says that they could be listed.
	KnowsBackups bool     `json:"knowsBackups"`
	Timeline     []Moment `json:"timeline"`
	// Refused is why the last switchover was refused.
	Refused string `json:"refused,omitempty"`
	// UnderWay is what was asked for and has not ended: switchover, restart or stop.
	UnderWay []Task `json:"underWay"`
}

// Archive is what can be restored, and how far the archive is behind.
type Archive struct {
	Windows []Window `json:"windows"`
	// Flows says that WAL reaches the archive as it is written. The status says only every ten minutes up to where.
	Flows       bool   `json:"flows"`
	LagBytes    int64  `json:"lagBytes"`
	LagSeconds  int64  `json:"lagSeconds"`
	ArchivedLSN string `json:"archivedLSN,omitempty"`
}

// Task is something that was asked for.
type Task struct {
	What    string `json:"what"`
	Message string `json:"message,omitempty"`
}

// DatabaseOf is the view of one database.
func DatabaseOf(db *v1.SampleDB, seen Seen) Database {
	out := Database{
		Row: rowOf(db), LastPrimary: db.Status.LastPrimary, Created: db.CreationTimestamp,
		Durability: cmp.Or(string(db.Spec.Durability), "quorum"), Picture: pictureOf(db, seen),
		KnowsBackups: seen.KnowsBackups, Conditions: conditionsOf(db), Archive: archiveOf(db),
		Backups:  backupsOf(seen.Backups),
		Timeline: timelineOf(db, seen), Refused: db.Annotations[naming.AnnotationSwitchoverRefused],
		UnderWay: tasksOf(db), Unpromoted: unpromoted(db),
	}
	out.Conditions = withoutEcho(out.Conditions)
	return out
}

// withoutEcho leaves out what Ready says where it repeats another condition.
func withoutEcho(all []Condition) []Condition {
	for i, c := range all {
		repeats := func(o Condition) bool {
			return o.Type != c.Type && o.Reason == c.Reason && o.Message == c.Message
		}
		if c.Type == v1.ConditionReady && slices.ContainsFunc(all, repeats) {
			all[i].Message, all[i].Todo = "", ""
		}
	}
	return all
}

// unpromoted says why no instance is promoted: the sentence is in the condition Available.
func unpromoted(db *v1.SampleDB) *Condition {
	c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAvailable)
	if db.Status.Refusal == "" || c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	out := conditionOf(*c, db)
	out.Reason = db.Status.Refusal
	return &out
}

func archiveOf(db *v1.SampleDB) Archive {
	b := db.Status.Backup
	flows := meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionArchiving)
	out := Archive{Windows: windowsOf(b), Flows: flows}
	if b != nil {
		out.LagBytes, out.LagSeconds, out.ArchivedLSN = b.LagBytes, b.LagSeconds, b.ArchivedLSN
	}
	return out
}

// tasksOf are what was asked for and has not ended.
func tasksOf(db *v1.SampleDB) []Task {
	out := []Task{}
	if to := db.Annotations[naming.AnnotationSwitchover]; to != "" {
		out = append(out, Task{"switchover", to})
	}
	if r := db.Status.Restart; db.Annotations[naming.AnnotationRestart] != "" || r != nil && !r.Ended() {
		message := db.Annotations[naming.AnnotationRestart]
		if r != nil && !r.Ended() {
			message = r.Message
		}
		out = append(out, Task{"restart", message})
	}
	if s := db.Status.Stop; s != nil {
		out = append(out, Task{"stop", s.Message})
	}
	return out
}
