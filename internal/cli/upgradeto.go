package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

type upgradeToOptions struct {
	watched
	to          int32
	now, accept bool
	rehearse    bool
	image       string
	wait        bool
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
			"With --rehearse nothing is upgraded but a copy, which is restored from the last backup: that shows how\n" +
			"long clients would be away, and whether there are problems.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.act(c, func(out io.Writer) error { return o.run(c.Context(), out, args[0]) })
		},
	}
	f := c.Flags()
	o.flags(f)
	f.Int32Var(&o.to, "to", 0, "the major version to move on to")
	f.BoolVar(&o.now, "now", false, "don't wait for the window of spec.update, and try again what has failed")
	f.BoolVar(&o.accept, "accept", false, "remove the data of the former version")
	f.BoolVar(&o.rehearse, "rehearse", false, "upgrade only a copy, and say what came of it")
	f.StringVar(&o.image, "image", "", "with --rehearse: the image of the new version, if spec.image is set")
	f.BoolVar(&o.wait, "wait", true, "wait for the outcome")
	f.DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait")
	return c
}

func (o *upgradeToOptions) run(ctx context.Context, out io.Writer, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	api, db, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	if o.accept {
		return o.acceptUpgrade(ctx, out, api, db)
	}
	if o.rehearse {
		return o.rehearseUpgrade(ctx, out, api, db)
	}
	patch := fmt.Appendf(nil, `{"spec":{"version":%d}}`, o.to)
	if o.now {
		patch = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"now"}},"spec":{"version":%d}}`,
			naming.AnnotationUpdate, o.to)
	}
	if err := patchDB(ctx, api, db, patch); err != nil {
		return fmt.Errorf("ask for the upgrade: %w", err)
	}
	if !o.wait {
		fmt.Fprintf(out, "%s: the upgrade to PostgreSQL %d is asked for\n", name, o.to)
		return nil
	}
	return o.await(ctx, out, api, db)
}

// check says what does not go together.
func (o *upgradeToOptions) check() error {
	if (o.to != 0) == o.accept {
		return errors.New("say either to which version (--to 18), or --accept")
	}
	if o.rehearse && (o.accept || o.now) || o.image != "" && !o.rehearse {
		return errors.New("--rehearse upgrades nothing: it goes without --accept and --now, and --image only with it")
	}
	return nil
}

// acceptUpgrade has the data of the former version removed.
func (o *upgradeToOptions) acceptUpgrade(ctx context.Context, out io.Writer, api client.Client, db *v1.SampleDB) error {
	u := db.Status.Upgrade
	if u == nil || u.Step != v1.UpgradeUpgraded {
		return fmt.Errorf("there is no upgrade of %s to accept", db.Name)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}}}`, naming.AnnotationAcceptUpgrade)
	if err := patchDB(ctx, api, db, patch); err != nil {
		return fmt.Errorf("accept the upgrade: %w", err)
	}
	fmt.Fprintf(out, "%s: the data of PostgreSQL %d is removed\n", db.Name, u.From)
	return nil
}

// await shows each step until the upgrade has ended.
func (o *upgradeToOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	shown := ""
	late := fmt.Sprintf("the upgrade has not ended after %s; it goes on. `kubectl toban status %s` says how far it is",
		o.timeout, before.Name)
	return o.watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		return o.show(out, db, &shown)
	})
}

// show prints a step that is new, and says whether the upgrade has ended; with an error where it has failed. What is on
// record of a try before this one is none of it.
func (o *upgradeToOptions) show(out io.Writer, db *v1.SampleDB, shown *string) (over bool, err error) {
	u := db.Status.Upgrade
	switch {
	case u == nil && db.Status.Major == o.to:
		fmt.Fprintf(out, "%s: it runs PostgreSQL %s already\n", db.Name, db.Status.Version)
		return true, nil
	case u == nil || u.To != o.to || u.Step == v1.UpgradeFailed && db.Annotations[naming.AnnotationUpdate] != "":
		return false, nil
	case u.Step == v1.UpgradeFailed:
		return true, errors.New(u.Message)
	}
	if text := u.Step + ": " + u.Message; text != *shown {
		*shown = text
		fmt.Fprintf(out, "%s: %s\n", db.Name, text)
	}
	return u.Step == v1.UpgradeUpgraded, nil
}
