package bluegreen

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/sampledb/world"
)

// end has no upgrade of a SampleDB that is being deleted go on, and names what the deletion waits for, "" for nothing.
// A second side that follows goes without a trace. One that serves has the last writes: it goes first, with the last
// backup (docs/bluegreen.md, "Deleted in the middle").
func (s *greenTopic) end(ctx context.Context) (waiting string, err error) {
	if s.Upgrade == nil {
		return "", nil
	}
	if err := s.all.keepSidesJobs(ctx, sidesWork{}); err != nil {
		return "", err
	}
	green, err := world.Find(ctx, s.Client, s.DB, naming.Green(s.DB.Name), &v1.SampleDB{})
	switch {
	case err != nil || green == nil || !world.Ours(green, s.DB):
		return "", err
	case s.DeletionPolicy.Spares() && !s.DB.Status.Upgrade.GreenServes():
		return "", nil
	case s.DeletionPolicy.Spares(): // where the kind of PostgreSQLs goes, that of the second side does not
		return "", s.letGreenGo(ctx, green)
	case !s.DB.Status.Upgrade.GreenServes():
		return s.deleteFollowing(ctx, green)
	}
	if err := s.deleteServing(ctx, green); err != nil || desired.DeletionPolicy(s.DB) != v1.DeletionSnapshot {
		return "", err
	}
	return waitsForGreen(s.DB.Name, green), s.rest.KeepUp(ctx)
}

// deleteFollowing deletes a second side that does not serve, by what is on record now: a cache may be late.
func (s *greenTopic) deleteFollowing(ctx context.Context, green *v1.SampleDB) (waiting string, err error) {
	if green.DeletionTimestamp != nil {
		return "", nil
	}
	now := &v1.SampleDB{}
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.DB), now); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read which side serves: %w", err)
	}
	if now.Status.Upgrade.GreenServes() {
		return "it to be seen here that " + green.Name + " serves", nil
	}
	return "", s.deleteGreen(ctx, green)
}

// deleteServing deletes the second side that serves. It lets no client in from then on, and what spec.DeletionPolicy
// says holds for its data too, also where that is changed later.
func (s *greenTopic) deleteServing(ctx context.Context, green *v1.SampleDB) error {
	if green.DeletionTimestamp != nil {
		return s.letGreenGo(ctx, green)
	}
	if err := s.applyGreen(ctx, sidesWork{green: green}); err != nil {
		return err
	}
	err := s.Client.Delete(ctx, green, client.Preconditions{UID: &green.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete SampleDB %s: %w", green.Name, err)
	}
	s.AddEvent(world.EventCleaningUp, fmt.Sprintf("the SampleDB %s, which serves, goes first", green.Name))
	return nil
}

// letGreenGo tells the second side where the user does without a last backup.
func (s *greenTopic) letGreenGo(ctx context.Context, green *v1.SampleDB) error {
	policy := s.DB.Spec.DeletionPolicy
	if desired.DeletionPolicy(s.DB) == v1.DeletionSnapshot || policy == green.Spec.DeletionPolicy {
		return nil
	}
	changed := green.DeepCopy()
	changed.Spec.DeletionPolicy = policy
	if err := s.Client.Patch(ctx, changed, client.MergeFrom(green)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("have SampleDB %s go without a last backup: %w", green.Name, err)
	}
	return nil
}

// waitsForGreen is what the deletion of a SampleDB waits for whose second side serves.
func waitsForGreen(name string, green *v1.SampleDB) string {
	words := fmt.Sprintf("the SampleDB %s, which has served and goes first, with the last backup", green.Name)
	if c := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionReady); c != nil &&
		c.Reason == v1.ReasonDeleting {
		words += fmt.Sprintf(" (%s)", c.Message)
	}
	return words + fmt.Sprintf(". If it can't be mended, set the spec.deletionPolicy of %s to Retain: its volumes "+
		"stay, and the last backup is that of %s's own instances, which may lack what was written last",
		green.Name, name)
}

// saved says that the second side has served to the end and has left a last backup, which has all.
func (s *greenTopic) saved(ctx context.Context) (bool, error) {
	if !s.DB.Status.Upgrade.GreenServes() {
		return false, nil
	}
	all, err := index.Backups(ctx, s.Client, s.DB.Namespace, naming.Green(s.DB.Name))
	if err != nil {
		return false, err
	}
	for i := range all {
		if isLastOfGreen(&all[i], s.DB) {
			return true, nil
		}
	}
	return false, nil
}

// isLastOfGreen says that a backup is the last one of the second side, is complete, and was begun after that side began
// to serve. A second side that somebody has deleted in an earlier upgrade may have left one too: it lacks all that was
// written since.
func isLastOfGreen(b *v1.DatabaseBackup, db *v1.SampleDB) bool {
	owner, since := b.Labels[naming.LabelOwner], db.Status.Upgrade.CompletedAt
	return owner != "" && b.Name == naming.FinalBackup(naming.Green(db.Name), owner) &&
		desired.SideOfBackup(b).UID == string(db.UID) && world.Complete(b) &&
		since != nil && b.CreationTimestamp.Unix() >= since.Unix()
}

// lacks is what the last backup of the SampleDB's own instances may lack, "" for nothing.
func (s *greenTopic) lacks() string {
	if !s.DB.Status.Upgrade.GreenServes() {
		return ""
	}
	return fmt.Sprintf(", and %s, which has served, has left no last backup: what was written there last may be "+
		"missing", naming.Green(s.DB.Name))
}

// stays says where the last writes are of a SampleDB that goes and leaves its data, while its second side
// serves; "" where there is nothing to say.
func (s *greenTopic) stays() string {
	green := naming.Green(s.DB.Name)
	switch {
	case !s.DB.Status.Upgrade.GreenServes():
		return ""
	case s.DeletionPolicy.Reason == world.DeletionOrphaned:
		return fmt.Sprintf("clients are led to the SampleDB %s, which is one of its own now", green)
	case desired.DeletionPolicy(s.DB) == v1.DeletionRetain:
		return fmt.Sprintf("what was written last is on the volumes of %s, which has served: a SampleDB of that name "+
			"takes them over", green)
	}
	return ""
}
