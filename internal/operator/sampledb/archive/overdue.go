package archive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

// The time that a scheduled backup has until it is overdue: twice that until the schedule's next run, within these. A
// scheduled backup has ended after a day (its spec.deadline).
const (
	patienceLeast = time.Hour
	patienceMost  = 24 * time.Hour
)

// promise is what decides whether a backup is overdue.
type promise struct {
	timetable
	now time.Time
	// made is when the SampleDB was created.
	made time.Time
	// complete is the last complete backup, without a name where there is none.
	complete tried
	// attempts are the backups that were begun after it because they were due, the first one first.
	attempts []tried
	// working says that the archive takes backups.
	working bool
}

// tried is a backup, complete or not.
type tried struct {
	name string
	// due is for when it was due, began when its DatabaseBackup was created.
	due, began time.Time
	// ended says that it is over, and message how.
	ended   bool
	message string
}

// overdue says since when which backup is missing, "" where the schedule is kept. It says the same as long as nothing
// happens.
func (p promise) overdue() string {
	from := p.made
	if p.complete.due.After(from) {
		from = p.complete.due
	}
	run, missed := p.first(from)
	if run.IsZero() || p.now.Before(missed.Add(p.patience(run))) || p.underWay(run) {
		return ""
	}
	if p.complete.name == "" && len(p.attempts) == 0 && !p.working {
		return "" // the archive has not begun: Archiving says why
	}
	words := "no backup is complete"
	if p.complete.name != "" {
		words = fmt.Sprintf("the last complete backup is %s", p.complete.name)
	}
	return fmt.Sprintf("%s; the schedule has asked for one at %s, and none since is complete. %s",
		words, missed.UTC().Format(time.RFC3339), p.why())
}

// patience is how long the backup of a run may take.
func (p promise) patience(run time.Time) time.Duration {
	return min(max(2*p.gap(run), patienceLeast), patienceMost)
}

// underWay says that the first attempt has not ended, and has its time still. It may have begun late, because the
// operator was away, or the schedule was another.
func (p promise) underWay(run time.Time) bool {
	return len(p.attempts) > 0 && !p.attempts[0].ended && p.now.Sub(p.attempts[0].began) < p.patience(run)
}

// why is what is known about the reason.
func (p promise) why() string {
	for _, a := range slices.Backward(p.attempts) {
		if a.ended {
			return fmt.Sprintf("%s has failed: %s", a.name, a.message)
		}
	}
	switch {
	case len(p.attempts) > 0:
		return fmt.Sprintf("%s was begun and has not ended: kubectl describe databasebackup %s says what it is doing",
			p.attempts[0].name, p.attempts[0].name)
	case !p.working:
		return "The archive does not work: see the condition Archiving"
	}
	return "None was begun"
}

// promise is what the condition Scheduled depends on, where the schedule can be understood. begun is the backup that
// was created just now, nil for none.
func (s *backupsTopic) promise(table timetable, begun *v1.DatabaseBackup) promise {
	out := promise{timetable: table, now: s.Now, made: s.DB.CreationTimestamp.Time}
	c := meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionArchiving)
	out.working = c != nil && archiveWorks(c)
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i] // there may be those of a former SampleDB of this name
		if world.Complete(b) && dueAt(b).After(out.complete.due) && !dueAt(b).Before(out.made) {
			out.complete = triedOf(b)
		}
	}
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if b.Labels[naming.LabelOwner] == string(s.DB.UID) && dueAt(b).After(out.complete.due) {
			out.attempts = append(out.attempts, triedOf(b))
		}
	}
	if begun != nil && !slices.ContainsFunc(out.attempts, func(a tried) bool { return a.name == begun.Name }) {
		out.attempts = append(out.attempts, tried{name: begun.Name, due: dueAt(begun), began: s.Now})
	}
	slices.SortFunc(out.attempts, func(a, b tried) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name, b.name))
	})
	return out
}

func triedOf(b *v1.DatabaseBackup) tried {
	out := tried{name: b.Name, due: dueAt(b), began: b.CreationTimestamp.Time, ended: world.Ended(b)}
	if c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete); c != nil {
		out.message = c.Message
	}
	return out
}
