package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
)

// rehearseUpgrade asks for a rehearsal, and shows what comes of it.
func (o *upgradeToOptions) rehearseUpgrade(
	ctx context.Context, out io.Writer, api client.Client, db *v1.SampleDB,
) error {
	if db.Annotations[naming.AnnotationRehearse] != "" {
		return fmt.Errorf("a rehearsal of %s is under way: `kubectl get sampledb %s "+
			"-o jsonpath='{.status.rehearsal}'` says how far it is", db.Name, db.Name)
	}
	asked := strings.TrimSpace(fmt.Sprintf("%d %s", o.to, o.image))
	if err := cluster.Request(ctx, api, db, naming.AnnotationRehearse, asked); err != nil {
		return fmt.Errorf("ask for the rehearsal: %w", err)
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: the rehearsal of an upgrade to PostgreSQL %d is asked for\n", db.Name, o.to)
		return nil
	}
	return o.awaitRehearsal(ctx, out, api, db)
}

// awaitRehearsal shows how far it is until it has ended, which is when the request is gone.
func (o *upgradeToOptions) awaitRehearsal(
	ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB,
) error {
	told := await.Lines{Out: out, Of: before.Name}
	late := fmt.Sprintf("the rehearsal has not ended after %s; it goes on, and its result will be in status.rehearsal "+
		"of %s", o.Timeout, before.Name)
	return o.Watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		if r := db.Status.Rehearsal; r.Ended() && equality.Semantic.DeepEqual(r, before.Status.Rehearsal) {
			return false, nil // that of before
		}
		return showRehearsal(out, db, &told)
	})
}

// showRehearsal prints what is new of a rehearsal, and says whether it has ended; with an error where it has not
// passed.
func showRehearsal(out io.Writer, db *v1.SampleDB, told *await.Lines) (over bool, err error) {
	r, asked := db.Status.Rehearsal, db.Annotations[naming.AnnotationRehearse] != ""
	switch {
	case asked && (r == nil || r.Ended()): // it is about to begin, or to be over
		return false, nil
	case !asked && r == nil:
		return true, errors.New("the rehearsal was given up")
	case !asked && r.Result == v1.RehearsalPassed:
		fmt.Fprintf(out, "%s: %s\n", db.Name, r.Message)
		return true, nil
	case !asked && r.Result == v1.RehearsalNotDone:
		return true, fmt.Errorf("the upgrade could not be rehearsed: %s", r.Message)
	case !asked && r.Ended():
		return true, errors.New(r.Message)
	}
	told.Tell(r.Message)
	return false, nil
}
