package restore

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
)

// restorePoll is how often it is looked how far a restore is.
const restorePoll = time.Second

// restoreWatch watches a restore.
type restoreWatch struct {
	api client.Client
	// asked is the SampleDB with the request, id that of a restore in place, "" for a new SampleDB.
	asked *v1.SampleDB
	id    string
}

// await tells how far it is until the database takes writes. Its error is why that does not come, and what to do.
func (w *restoreWatch) await(ctx context.Context, out io.Writer) error {
	left := fmt.Sprintf("it goes on without being watched: kubectl toban status %s%s",
		w.asked.Name, w.takeBack("; to give it up"))
	primary := ""
	err := await.RequestOf(w.api, w.asked, left).Await(ctx, out, func(now *v1.SampleDB) (string, bool, error) {
		if !w.seen(now) {
			return "", false, nil
		}
		over, err := w.outcome(now)
		if err != nil {
			err = w.giveUp(ctx, now, err)
		}
		primary = now.Status.Primary
		return named(now, restoreLine(now)), over, err
	})
	if err == nil {
		fmt.Fprintf(out, "%s: %s takes writes\n", w.asked.Name, primary)
	}
	return err
}

// named is a line about a SampleDB, "" for none.
func named(db *v1.SampleDB, line string) string {
	if line == "" {
		return ""
	}
	return db.Name + ": " + line
}

// seen says that the operator's status is about this restore.
func (w *restoreWatch) seen(now *v1.SampleDB) bool {
	taken := now.Spec.Restore == nil || now.Spec.Restore.ID != w.id
	return w.id == "" || taken || now.Status.Restore != nil && now.Status.Restore.ID == w.id
}

// restoreLine says in a line how far a restore is, "" while nothing is known.
func restoreLine(db *v1.SampleDB) string {
	c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionRestored)
	if c == nil ||
		c.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAvailable) {
		c = meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady)
	}
	if c == nil {
		return ""
	}
	line := c.Message
	if r := db.Status.Restore; r != nil && r.Progress != nil && r.CompletedAt == nil {
		line += fmt.Sprintf(" (%d%%, %d MiB/s)", r.Progress.Percent, r.Progress.Rate>>20)
	}
	return line
}

// outcome says whether the restore is over; with an error where it does not come to its end.
func (w *restoreWatch) outcome(now *v1.SampleDB) (bool, error) {
	if w.id != "" && (now.Spec.Restore == nil || now.Spec.Restore.ID != w.id) {
		return false, fmt.Errorf("spec.restore of %s says something else meanwhile: the restore %s is not wanted "+
			"any more", now.Name, w.id)
	}
	c := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionRestored)
	switch {
	case c == nil:
		return false, nil
	case c.Reason == v1.ReasonRestoreFailed, c.Reason == v1.ReasonRestoreSourceNotFound:
		return false, fmt.Errorf("the restore has failed: %s", c.Message)
	}
	done := c.Status == metav1.ConditionTrue && meta.IsStatusConditionTrue(now.Status.Conditions, v1.ConditionAvailable)
	return done && now.Status.Primary != "", nil
}

// giveUp takes a restore in place back that has failed while somebody watched: the operator would try
// it again when nobody does.
func (w *restoreWatch) giveUp(ctx context.Context, now *v1.SampleDB, failure error) error {
	if w.id == "" {
		return fmt.Errorf("%w\nIt is tried again every few minutes. To mend it: kubectl edit sampledb %s; "+
			"to give it up: kubectl delete sampledb %s", failure, now.Name, now.Name)
	}
	_, err := changeSpec(ctx, w.api, w.asked, func(now *v1.SampleDB) error {
		if now.Spec.Restore != nil && now.Spec.Restore.ID == w.id {
			now.Spec.Restore = nil
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\nThe database is as it was, but it will be tried again%s",
			failure, w.takeBack(". To give it up"))
	}
	return fmt.Errorf("%w\nThe database is as it was, and the request is taken back", failure)
}

// takeBack is how to take a restore in place back, after some words; nothing for a new SampleDB.
func (w *restoreWatch) takeBack(words string) string {
	if w.id == "" {
		return ""
	}
	return fmt.Sprintf("%s: kubectl patch sampledb %s --type=merge -p '{\"spec\":{\"restore\":null}}'",
		words, w.asked.Name)
}
