package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
)

type upgradeToOptions struct {
	await.Watched
	to                int32
	strategy          string
	now, back, accept bool
	rehearse          bool
	image             string
}

// UpgradeTo is `toban upgrade`: it moves a SampleDB on to another major version.
func UpgradeTo() *cobra.Command {
	var o upgradeToOptions
	c := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Move a SampleDB on to another major version of PostgreSQL",
		Long: "Sets spec.version, and shows each step of the upgrade. While the databases are checked and backed up\n" +
			"they serve as before; then no client is let in for some seconds. With --accept the data of the former\n" +
			"version, which is kept after an upgrade, is removed.\n" +
			"With --strategy blue-green, which is on trial, a second set of instances is upgraded beside the\n" +
			"present one, and follows it; then clients move there within 3 s. From then on the former set follows:\n" +
			"--back moves clients back to it, with all that was written meanwhile, until --accept ends that. To\n" +
			"cancel it before, set the version back (--to 17).\n" +
			"With --rehearse nothing is upgraded but a copy, which is restored from the last backup: that shows how\n" +
			"long clients would be away, and whether there are problems.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	f := c.Flags()
	o.Flags(f, "wait for the outcome", time.Hour)
	f.Int32Var(&o.to, "to", 0, "the major version to move on to")
	f.StringVar(&o.strategy, "strategy", "", "how: in-place or blue-green (default: as spec.upgrade.strategy says)")
	// It fails only for a flag that is not there.
	_ = c.RegisterFlagCompletionFunc("strategy",
		cobra.FixedCompletions(slices.Sorted(maps.Keys(strategies))[1:], // without the empty one
			cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&o.now, "now", false, "don't wait for the window of spec.update, and try again what has failed")
	f.BoolVar(&o.back, "back", false, "after a blue/green upgrade: move clients back to the former version; after one "+
		"in place: say what leads back, and what that loses")
	f.BoolVar(&o.accept, "accept", false, "end the way back: remove the data of the former version")
	f.BoolVar(&o.rehearse, "rehearse", false, "upgrade only a copy, and say what came of it")
	f.StringVar(&o.image, "image", "", "with --rehearse: the image of the new version, if spec.image is set")
	return c
}

func (o *upgradeToOptions) run(ctx context.Context, out io.Writer, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	api, db, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case o.accept:
		return o.acceptUpgrade(ctx, out, api, db)
	case o.back:
		return o.goBack(ctx, out, api, db)
	case o.rehearse:
		return o.rehearseUpgrade(ctx, out, api, db)
	}
	if err := o.refuseStrategy(db); err != nil {
		return err
	}
	patch, err := o.patch()
	if err != nil {
		return err
	}
	o.tellWayBack(out, db)
	if err := cluster.Patch(ctx, api, db, patch); err != nil {
		return fmt.Errorf("ask for the upgrade: %w", err)
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: the upgrade to PostgreSQL %d is asked for\n", name, o.to)
		return nil
	}
	return o.await(ctx, out, api, db)
}

// check says what does not go together.
func (o *upgradeToOptions) check() error {
	asked := 0
	for _, is := range []bool{o.to != 0, o.back, o.accept} {
		if is {
			asked++
		}
	}
	if asked != 1 {
		return errors.New("say either to which version (--to 18), or --back, or --accept")
	}
	if o.rehearse && (o.to == 0 || o.now || o.strategy != "") || o.image != "" && !o.rehearse {
		return errors.New("--rehearse upgrades nothing: it goes with --to, without --now and --strategy, and --image " +
			"only with it")
	}
	if o.strategy != "" && o.to == 0 {
		return errors.New("--strategy says how to get to another version: it goes with --to")
	}
	_, err := strategyOf(o.strategy)
	return err
}

// patch is what asks for the upgrade.
func (o *upgradeToOptions) patch() ([]byte, error) {
	strategy, err := strategyOf(o.strategy)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"version": o.to}
	if strategy != "" {
		spec["upgrade"] = map[string]any{"strategy": strategy}
	}
	patch := map[string]any{"spec": spec}
	if o.now {
		patch["metadata"] = map[string]any{"annotations": map[string]string{naming.AnnotationUpdate: "now"}}
	}
	return json.Marshal(patch)
}

// acceptUpgrade has the data of the former version removed.
func (o *upgradeToOptions) acceptUpgrade(ctx context.Context, out io.Writer, api client.Client, db *v1.SampleDB) error {
	u := db.Status.Upgrade
	sides := u.GreenServes() && u.Sides.Step == v1.SidesChanged
	if u == nil || u.FullStep() != v1.UpgradeUpgraded && !sides {
		return fmt.Errorf("there is no upgrade of %s to accept", db.Name)
	}
	if err := cluster.Request(ctx, api, db, naming.AnnotationAcceptUpgrade, "yes"); err != nil {
		return fmt.Errorf("accept the upgrade: %w", err)
	}
	if !sides {
		fmt.Fprintf(out, "%s: the data of PostgreSQL %d is removed\n", db.Name, u.From)
		return nil
	}
	fmt.Fprintf(out, "%s: the upgrade is accepted. There is no way back to PostgreSQL %d any more\n", db.Name, u.From)
	if !o.Wait {
		return nil
	}
	o.to = u.To
	return o.await(ctx, out, api, db)
}

// await shows each step until the upgrade has ended.
func (o *upgradeToOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	told := await.Lines{Out: out, Of: before.Name}
	late := fmt.Sprintf("the upgrade has not ended after %s; it goes on. `kubectl toban status %s` says how far it is",
		o.Timeout, before.Name)
	return o.Watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		return o.show(db, &told)
	})
}

// show prints a step that is new, and says whether the upgrade has ended; with an error where it has failed. What is on
// record of a try before this one is none of it.
func (o *upgradeToOptions) show(db *v1.SampleDB, told *await.Lines) (over bool, err error) {
	u := db.Status.Upgrade
	switch {
	case u != nil && u.Sides != nil && u.From == o.to:
		return o.showBack(db, told)
	case u == nil && db.Status.Major == o.to:
		told.Tell(fmt.Sprintf("it runs PostgreSQL %s already", db.Status.Version))
		return true, nil
	case u == nil || u.To != o.to || hasFailed(u) && db.Annotations[naming.AnnotationUpdate] != "":
		return false, nil
	case hasFailed(u):
		return true, errors.New(u.Message)
	}
	told.Tell(u.FullStep() + ": " + u.Message)
	if u.Sides != nil { // clients have moved, or all has come home
		return u.FullStep() == v1.UpgradeUpgraded || !o.accept && u.Sides.Step == v1.SidesChanged, nil
	}
	return u.Step == v1.UpgradeUpgraded, nil
}

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
