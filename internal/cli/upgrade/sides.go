package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/desired/upgrades"
)

// strategies are the values of --strategy, and what they are in the spec.
var strategies = map[string]v1.UpgradeStrategy{
	"": "", "in-place": v1.StrategyInPlace, "blue-green": v1.StrategyBlueGreen,
}

func strategyOf(word string) (v1.UpgradeStrategy, error) {
	strategy, known := strategies[word]
	if !known {
		return "", fmt.Errorf("--strategy is in-place or blue-green, and not %s", word)
	}
	return strategy, nil
}

// refuseStrategy says why the SampleDB can't be upgraded by a second side, where that is asked for: with the words of
// the operator, before anything is changed.
func (o *upgradeToOptions) refuseStrategy(db *v1.SampleDB) error {
	after := o.after(db)
	if !desired.Upgrades(after) || !desired.BlueGreen(after) {
		return nil
	}
	if _, sentence := bluegreen.StrategyRefusal(sides.StrategyFacts(after)); sentence != "" {
		return fmt.Errorf("%s can't be upgraded by a second side: %s", db.Name, sentence)
	}
	return nil
}

// tellWayBack prints which way back there will be after an upgrade in place, before it is asked for.
func (o *upgradeToOptions) tellWayBack(out io.Writer, db *v1.SampleDB) {
	if after := o.after(db); desired.Upgrades(after) && !desired.BlueGreen(after) {
		fmt.Fprintf(out, "%s: %s\n", db.Name, upgrades.WayBack(after).Sentence())
	}
}

// after is the SampleDB as it is asked to be.
func (o *upgradeToOptions) after(db *v1.SampleDB) *v1.SampleDB {
	after := db.DeepCopy()
	after.Spec.Version = o.to
	if strategy, _ := strategyOf(o.strategy); strategy != "" {
		if after.Spec.Upgrade == nil {
			after.Spec.Upgrade = &v1.UpgradeSpec{}
		}
		after.Spec.Upgrade.Strategy = strategy
	}
	return after
}

// goBack asks for the way back of a blue/green upgrade, and shows it. After an upgrade in place it says which act is
// the way back: that one is not done by itself, for it loses what was written since.
func (o *upgradeToOptions) goBack(ctx context.Context, out io.Writer, api client.Client, db *v1.SampleDB) error {
	if u := db.Status.Upgrade; u != nil && u.Sides == nil &&
		(u.Step == v1.UpgradeUpgraded || u.Step == v1.UpgradeStarting) {
		return tellWayBackInPlace(out, db)
	}
	if err := whyNoWayBack(db); err != nil {
		return err
	}
	if err := cluster.Request(ctx, api, db, naming.AnnotationUpgradeBack, "yes"); err != nil {
		return fmt.Errorf("ask for the way back: %w", err)
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: the way back to PostgreSQL %d is asked for\n", db.Name, db.Status.Upgrade.From)
		return nil
	}
	told, gone := await.Lines{Out: out, Of: db.Name}, time.Time{}
	late := fmt.Sprintf("the way back has not ended after %s; it goes on. `kubectl toban status %s` says how far it "+
		"is", o.Timeout, db.Name)
	return o.Watch(ctx, api, db, late, func(db *v1.SampleDB) (bool, error) {
		// The operator removes the request when it has ended, and writes the status that says how.
		if u := db.Status.Upgrade; !u.GreenServes() || db.Annotations[naming.AnnotationUpgradeBack] != "" {
			gone = time.Time{}
		} else if gone.IsZero() {
			gone = time.Now()
		} else if time.Since(gone) >= await.StatusPatience {
			return true, errors.New("the way back was not taken: " + u.Message)
		}
		return o.showBack(db, &told)
	})
}

// whyNoWayBack says why there is no former side to go back to.
func whyNoWayBack(db *v1.SampleDB) error {
	u := db.Status.Upgrade
	switch {
	case u == nil:
		return fmt.Errorf("there is no upgrade of %s to go back from", db.Name)
	case u.Sides == nil:
		return fmt.Errorf("%s has PostgreSQL %d still, and there is nothing to go back from. To cancel the upgrade: "+
			"kubectl toban upgrade %s --to %d", db.Name, u.From, db.Name, u.From)
	case !u.GreenServes():
		return fmt.Errorf("clients of %s are on PostgreSQL %d, and there is nothing to go back from. To cancel the "+
			"upgrade: kubectl toban upgrade %s --to %d", db.Name, u.From, db.Name, u.From)
	case u.Sides.Step == v1.SidesComingHome:
		return fmt.Errorf("the upgrade of %s is accepted, and no side has PostgreSQL %d any more. What was before it, "+
			"the archive has", db.Name, u.From)
	}
	return nil
}

// tellWayBackInPlace prints what leads back after an upgrade in place, and from when on what was written is not in it.
func tellWayBackInPlace(out io.Writer, db *v1.SampleDB) error {
	u := db.Status.Upgrade
	archive, whole := desired.Backup(db) != nil, u.WayBack == v1.WayBackFormerData
	if !archive && !whole {
		return fmt.Errorf("there is no way back from PostgreSQL %d to %d: %s has no archive (spec.backup), and its "+
			"former data is of no use any more", u.To, u.From, db.Name)
	}
	if archive {
		fmt.Fprintf(out, "%s is as it was before the upgrade, with PostgreSQL %d, in another SampleDB by\n"+
			"  kubectl toban restore %s --namespace %s --into OTHER --to %s\n", db.Name, u.From, db.Name, db.Namespace,
			u.ClosedAt)
		if u.Backup == "" {
			fmt.Fprintln(out, "No backup was taken right before the upgrade: an earlier one must be in the archive.")
		}
	} else {
		fmt.Fprintln(out, "There is no archive (spec.backup).")
	}
	if whole {
		fmt.Fprintf(out, "The former data is whole, in the folder before-%s/data of the volume of %s, until the "+
			"upgrade is accepted: start a server of PostgreSQL %d on a copy of it.\n", u.ID, u.Instance, u.From)
	}
	fmt.Fprintf(out, "What clients have written since %s is not in it. %s itself stays as it is.\n",
		u.ClosedAt, db.Name)
	return nil
}

// hasFailed says that an upgrade has, and that nothing of it is left.
func hasFailed(u *v1.UpgradeStatus) bool { return u.FullStep() == v1.UpgradeFailed }

// showBack prints a step on the way back to the former side that is new, and says whether it has ended.
func (o *upgradeToOptions) showBack(db *v1.SampleDB, told *await.Lines) (over bool, err error) {
	u := db.Status.Upgrade
	if u == nil {
		told.Tell("it runs PostgreSQL " + db.Status.Version)
		return true, nil
	}
	told.Tell(u.FullStep() + ": " + u.Message)
	return hasFailed(u), nil
}
