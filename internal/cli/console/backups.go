package console

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Backup is a DatabaseBackup.
type Backup struct {
	Name      string       `json:"name"`
	Phase     string       `json:"phase"`
	Message   string       `json:"message,omitempty"`
	Done      string       `json:"done,omitempty"`
	CreatedAt metav1.Time  `json:"createdAt"`
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	EndedAt   *metav1.Time `json:"endedAt,omitempty"`
	// Seconds is how long it took.
	Seconds  *float64 `json:"seconds,omitempty"`
	Type     string   `json:"type,omitempty"`
	Size     string   `json:"size,omitempty"`
	Stored   string   `json:"stored,omitempty"`
	Instance string   `json:"instance,omitempty"`
	Keep     bool     `json:"keep,omitempty"`
	Proof    Proof    `json:"proof"`
}

// Proof is whether a backup was restored and checked.
type Proof struct {
	// Is proved, refuted, open while that is asked for or under way, or none.
	Is      string       `json:"is"`
	Message string       `json:"message,omitempty"`
	At      *metav1.Time `json:"at,omitempty"`
	// RecoverySeconds is how long the restore took until the database could have been used.
	RecoverySeconds *float64 `json:"recoverySeconds,omitempty"`
}

// backupsOf are the backups of a database, the newest first.
func backupsOf(all []v1.DatabaseBackup) []Backup {
	out := []Backup{}
	for i := range all {
		out = append(out, backupOf(&all[i]))
	}
	slices.SortFunc(out, func(a, b Backup) int { return b.CreatedAt.Compare(a.CreatedAt.Time) })
	return out
}

func backupOf(b *v1.DatabaseBackup) Backup {
	s := b.Status
	out := Backup{Name: b.Name, Phase: s.Phase, Done: s.Done, CreatedAt: b.CreationTimestamp, StartedAt: s.StartedAt,
		EndedAt: s.CompletedAt, Type: string(s.Type), Size: s.Size, Stored: s.StoredSize, Instance: s.Instance,
		Keep: b.Spec.Keep, Proof: proofOf(b)}
	if c := meta.FindStatusCondition(s.Conditions, v1.ConditionComplete); c != nil {
		out.Message = c.Message
	}
	if s.StartedAt != nil && s.CompletedAt != nil {
		took := s.CompletedAt.Sub(s.StartedAt.Time).Seconds()
		out.Seconds = &took
	}
	return out
}

func proofOf(b *v1.DatabaseBackup) Proof {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionVerified)
	if c == nil {
		return Proof{Is: "none"}
	}
	out := Proof{Is: "open", Message: c.Message}
	switch {
	case c.Status == metav1.ConditionTrue:
		out.Is = "proved"
	case c.Reason == v1.ReasonVerificationFailed:
		out.Is = "refuted"
	}
	if v := b.Status.Verification; v != nil && out.Is != "open" {
		out.At = v.CompletedAt
		if v.RecoveryTime != nil {
			took := v.RecoveryTime.Seconds()
			out.RecoverySeconds = &took
		}
	}
	return out
}

// Window is a time of which every moment can be restored.
type Window struct {
	Branch int64       `json:"branch"`
	From   metav1.Time `json:"from"`
	To     metav1.Time `json:"to"`
	// GoesOn says that it is the present one: To moves on.
	GoesOn bool `json:"goesOn,omitempty"`
	// Version is the major version of PostgreSQL where it is a former one.
	Version int32 `json:"version,omitempty"`
}

// windowsOf are what can be restored, the oldest first.
func windowsOf(b *v1.BackupStatus) []Window {
	out := []Window{}
	if b == nil {
		return out
	}
	add := func(w v1.RestoreWindow, version int32) {
		one := Window{Branch: w.Branch, Version: version}
		switch {
		case w.Earliest == nil:
			return
		case w.Latest != nil:
			one.From, one.To = *w.Earliest, *w.Latest
		case b.Latest != nil && version == 0:
			one.From, one.To, one.GoesOn = *w.Earliest, *b.Latest, true
		default:
			return
		}
		out = append(out, one)
	}
	for _, w := range b.Windows {
		add(w, 0)
	}
	if len(b.Windows) == 0 {
		add(v1.RestoreWindow{Earliest: b.Earliest}, 0)
	}
	for _, f := range b.Former {
		for _, w := range f.Windows {
			add(w, f.Version)
		}
	}
	slices.SortStableFunc(out, func(a, b Window) int { return a.From.Compare(b.From.Time) })
	return out
}
