package outside

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
)

// Poll is how often something is looked at while it is waited for: a look that takes long, as one with kubectl does, is
// made seldom, so that looking does not keep busy what is looked at, but with pauses of pollSeldom at most.
const (
	Poll       = 200 * time.Millisecond
	pollSeldom = time.Second
)

// Until looks again and again until there is nothing to complain of any more. It
// returns the last complaint when the time is over.
func Until(ctx context.Context, patience time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var complaint error
	for {
		begin := time.Now()
		err := look(ctx)
		pause := min(pollSeldom, max(Poll, 3*time.Since(begin)))
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || complaint == nil {
			complaint = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", patience, complaint)
		case <-time.After(pause):
		}
	}
}

// Condition is a complaint while a SampleDB's condition, about its present spec,
// is not what is wanted. No reason wanted is any.
func Condition(db v1.SampleDB, kind, status, reason string) error {
	c := meta.FindStatusCondition(db.Status.Conditions, kind)
	switch {
	case c == nil:
		return fmt.Errorf("%s has no condition %s", db.Name, kind)
	case c.ObservedGeneration < db.Generation:
		return fmt.Errorf("%s: the condition %s is about generation %d, not %d",
			db.Name, kind, c.ObservedGeneration, db.Generation)
	case string(c.Status) != status, reason != "" && c.Reason != reason:
		return fmt.Errorf("%s: %s is %s, %s: %s (want %s %s)",
			db.Name, kind, c.Status, c.Reason, c.Message, status, reason)
	}
	return nil
}

// RunsAnother is the image on record of a SampleDB, and a complaint while that is a former one, or there is none, or an
// update is under way.
func RunsAnother(db v1.SampleDB, former string) (image string, err error) {
	if db.Status.Image == nil || db.Status.Image.Runs == "" || db.Status.Image.Runs == former ||
		db.Status.Update != nil {
		return "", fmt.Errorf("on record is %+v, and %+v is left", db.Status.Image, db.Status.Update)
	}
	return db.Status.Image.Runs, nil
}
