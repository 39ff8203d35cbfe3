package main

import (
	"context"
	"errors"
	"fmt"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

// kind is what is measured: what it needs if the flags do not say it, and in which ways it is done.
type kind struct {
	from, to, instances int
	ways                []way
}

var kinds = map[string]kind{
	"inplace":   {15, 17, 1, []way{{"Toban", inPlace}, {"hand", byHand}}},
	"minor":     {17, 17, 3, []way{{"Toban", minorUpdate}}},
	"bluegreen": {17, 18, 1, []way{{"Toban", blueGreen}}},
}

// minorImage is the name of the image that becomes another one.
const minorImage = "docker.io/library/postgres-bench:17"

// minorUpdate has a SampleDB of its own take a newer minor version over.
func minorUpdate(ctx context.Context, o options) ([]measured, error) {
	if o.from != 17 || o.to != 17 {
		return nil, errors.New("two minor versions are there of PostgreSQL 17 alone")
	}
	older, newer, err := releases.Minors(ctx)
	if err != nil {
		return nil, err
	}
	if older == newer {
		return nil, fmt.Errorf("there are no two minor versions now: Debian's stable archive has %s, and so has that "+
			"of its security updates", newer)
	}
	if err := releases.Load(ctx, minorImage, releases.OlderMinor); err != nil {
		return nil, err
	}
	spec := []string{"image: " + minorImage, "backup: {none: true}"}
	return onCluster(ctx, o, spec, change{what: older + " to " + newer, do: takeOver})
}

func takeOver(ctx context.Context) error {
	var former string
	if err := runsAnother(ctx, &former); err != nil {
		return err
	}
	if err := releases.Load(ctx, minorImage, releases.NewerMinor); err != nil {
		return err
	}
	if _, err := namespace.Kubectl(ctx, "annotate", "sampledb", name, naming.AnnotationUpdate+"=now"); err != nil {
		return err
	}
	if err := runsAnother(ctx, &former); err != nil {
		return err
	}
	return reaches(ctx, v1.ConditionReady, v1.ReasonReady)
}

// runsAnother waits until another image is on record, and which one that is.
func runsAnother(ctx context.Context, image *string) error {
	former := *image
	return becomes(ctx, func(db v1.SampleDB) (err error) {
		*image, err = outside.RunsAnother(db, former)
		return err
	})
}

// blueGreen moves a SampleDB of its own to another major version by a second side, and home.
func blueGreen(ctx context.Context, o options) ([]measured, error) {
	return onCluster(ctx, o, []string{"upgrade: {strategy: BlueGreen}"},
		change{fmt.Sprint("to ", o.to), func(ctx context.Context) error {
			if err := o.raise(ctx); err != nil {
				return err
			}
			return sidesAre(ctx, v1.SidesChanged, v1.SideGreen)
		}},
		change{"home", func(ctx context.Context) error {
			_, err := namespace.Kubectl(ctx, "annotate", "sampledb", name, naming.AnnotationAcceptUpgrade+"=yes")
			if err != nil {
				return err
			}
			return sidesAre(ctx, v1.UpgradeUpgraded, v1.SideBlue)
		}})
}

// sidesAre waits until a blue/green upgrade is at a step, and a side serves.
func sidesAre(ctx context.Context, step, serves string) error {
	var failed error
	err := becomes(ctx, func(db v1.SampleDB) error {
		switch u := db.Status.Upgrade; {
		case u == nil || u.Sides == nil:
			return errors.New("the upgrade has not begun")
		case u.Sides.Step == v1.UpgradeFailed:
			failed = fmt.Errorf("the upgrade has failed: %s", u.Message)
			return nil
		case u.Sides.Step != step || u.Sides.Serves != serves:
			return fmt.Errorf("the upgrade is at %s, and %s serves: %s", u.Sides.Step, u.Sides.Serves, u.Message)
		}
		return nil
	})
	return errors.Join(err, failed)
}
