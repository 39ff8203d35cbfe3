package main

import (
	"context"
	"fmt"

	"toban.dev/internal/naming"
	"toban.dev/test/crowd"
)

// shared are what all databases of a machine share: what one in trouble makes them do is taken from the others.
var shared = []string{crowd.Operator, crowd.APIServer, crowd.Nodes}

// mostMore is by how much more of a processor they may take, all together.
const mostMore = 0.1

// loginTrigger writes at each login, which no standby can do.
const loginTrigger = `CREATE TABLE IF NOT EXISTS logins (at timestamptz);
CREATE OR REPLACE FUNCTION logged_in() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.logins VALUES (now()); END $$;
CREATE EVENT TRIGGER logged_in ON login EXECUTE FUNCTION logged_in();
ALTER EVENT TRIGGER logged_in ENABLE ALWAYS;`

// trouble is what makes one of the databases unable to elect, or tries to.
type trouble struct {
	what string
	// make makes it; mends says that the database is to take writes all the same.
	make  func(ctx context.Context, b *bench, name string) error
	mends bool
}

var troubles = []trouble{
	{"a login trigger that writes, and its primary deleted", lockOut, true},
	{"all its Pods limited to 50m", strangle, false},
	{"both standbys' data unreadable, and its primary deleted", blind, false},
}

// inTrouble has one of them in trouble. The others must not notice.
func (b *bench) inTrouble(ctx context.Context) error {
	rest, err := crowd.Measure(ctx, b.look)
	if err != nil {
		return err
	}
	for i, t := range troubles {
		name := b.crowd.Names[i%len(b.crowd.Names)]
		others := b.crowd.Named(b.crowd.Names[:min(i+1, len(b.crowd.Names)-1)]...)
		err := b.elections(ctx, others, t.what+": the others", 0, func() error {
			if err := t.make(ctx, b, name); err != nil {
				return err
			}
			u, err := crowd.Measure(ctx, b.look)
			if err != nil {
				return err
			}
			more := 0.0
			for _, kind := range shared {
				more += u.Cores[kind] - rest.Cores[kind]
			}
			b.row("… operator, API server and nodes", fmt.Sprintf("%+.3f of a processor", more),
				fmt.Sprintf("%.1f more at most", mostMore), more <= mostMore)
			return nil
		})
		if err != nil {
			return err
		}
		if err := b.mended(ctx, t, name); err != nil {
			return err
		}
	}
	return nil
}

// mended looks whether one in trouble takes writes, where it is to.
func (b *bench) mended(ctx context.Context, t trouble, name string) error {
	if !t.mends {
		return nil
	}
	one := crowd.Crowd{Namespace: namespace, Names: []string{name}}
	err := one.TakeWrites(ctx, b.settles)
	b.row("… and it takes writes itself", fmt.Sprint(err == nil), "true", err == nil)
	return nil
}

// superuser runs statements in a database of a SampleDB.
func superuser(ctx context.Context, name, database, statements string) error {
	db, err := namespace.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	_, err = namespace.KubectlWith(ctx, statements, "exec", "-i", db.Status.Primary, "--",
		"psql", "-U", "postgres", "-X", "--set=ON_ERROR_STOP=1", database)
	return err
}

func lockOut(ctx context.Context, _ *bench, name string) error {
	if err := superuser(ctx, name, "postgres", "SET search_path = public; "+loginTrigger); err != nil {
		return err
	}
	return deletePrimary(ctx, name)
}

func deletePrimary(ctx context.Context, name string) error {
	db, err := namespace.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	_, err = namespace.Kubectl(ctx, "delete", "pod", db.Status.Primary, "--wait=false")
	return err
}

func strangle(ctx context.Context, _ *bench, name string) error {
	_, err := namespace.Kubectl(ctx, "patch", "sampledb", name, "--type=merge", "-p",
		`{"spec":{"resources":{"limits":{"cpu":"50m"},"requests":{"cpu":"10m"}}}}`)
	return err
}

// blind takes the standbys' data away from under them, and then the primary.
func blind(ctx context.Context, _ *bench, name string) error {
	db, err := namespace.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	for i := range db.Spec.Instances {
		if pod := naming.Instance(name, int(i)); pod != db.Status.Primary {
			if _, err := namespace.Kubectl(ctx, "exec", pod, "--", "chmod", "0000", "/pgdata/data"); err != nil {
				return err
			}
		}
	}
	_, err = namespace.Kubectl(ctx, "delete", "pod", db.Status.Primary, "--force", "--wait=false")
	return err
}

// isLimited holds all of them to a CPU limit, under load.
func (b *bench) isLimited(ctx context.Context) error {
	if _, err := namespace.Kubectl(ctx, "delete", "sampledb", "--all", "--timeout=5m"); err != nil {
		return err
	}
	limit := ", resources: {limits: {cpu: " + b.cpu + "}, requests: {cpu: 10m}}"
	c := crowd.Crowd{Namespace: namespace}
	for _, name := range b.crowd.Names {
		c.Names = append(c.Names, name+"-limited")
	}
	if err := c.Create(ctx, limit); err != nil {
		return err
	}
	if _, err := c.Ready(ctx, 10*b.readyWithin); err != nil {
		return err
	}
	return b.elections(ctx, c, fmt.Sprintf("pgbench for %s, each container limited to %s", b.limited, b.cpu), 0,
		func() error {
			tps, err := c.Pgbench(ctx, 4, b.limited)
			b.row("… transactions a second, all together", fmt.Sprintf("%.0f", tps), "", true)
			return err
		})
}
