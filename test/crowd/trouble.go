package crowd

import (
	"context"

	"toban.dev/internal/naming"
)

// loginTrigger writes at each login, which no standby can do.
const loginTrigger = `CREATE TABLE IF NOT EXISTS logins (at timestamptz);
CREATE OR REPLACE FUNCTION logged_in() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.logins VALUES (now()); END $$;
CREATE EVENT TRIGGER logged_in ON login EXECUTE FUNCTION logged_in();
ALTER EVENT TRIGGER logged_in ENABLE ALWAYS;`

// Trouble is what makes one of the databases unable to elect, or tries to.
type Trouble struct {
	What string
	// Make makes it.
	Make func(ctx context.Context, c Crowd, name string) error
	// Mends says that the database is to take writes all the same.
	Mends bool
}

// Troubles are those of which the other databases must notice nothing.
var Troubles = []Trouble{
	{"a login trigger that writes, and its primary deleted", lockOut, true},
	{"all its Pods limited to 50m", strangle, false},
	{"both standbys' data unreadable, and its primary deleted", blind, false},
}

// superuser runs statements in a database of a SampleDB.
func (c Crowd) superuser(ctx context.Context, name, database, statements string) error {
	db, err := c.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	_, err = c.KubectlWith(ctx, statements, "exec", "-i", db.Status.Primary, "--",
		"psql", "-U", "postgres", "-X", "--set=ON_ERROR_STOP=1", database)
	return err
}

func lockOut(ctx context.Context, c Crowd, name string) error {
	if err := c.superuser(ctx, name, "postgres", "SET search_path = public; "+loginTrigger); err != nil {
		return err
	}
	return c.deletePrimary(ctx, name)
}

func (c Crowd) deletePrimary(ctx context.Context, name string) error {
	db, err := c.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "delete", "pod", db.Status.Primary, "--wait=false")
	return err
}

func strangle(ctx context.Context, c Crowd, name string) error {
	_, err := c.Kubectl(ctx, "patch", "sampledb", name, "--type=merge", "-p",
		`{"spec":{"resources":{"limits":{"cpu":"50m"},"requests":{"cpu":"10m"}}}}`)
	return err
}

// blind takes the standbys' data away from under them, and then the primary.
func blind(ctx context.Context, c Crowd, name string) error {
	db, err := c.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	for i := range db.Spec.Instances {
		if pod := naming.Instance(name, int(i)); pod != db.Status.Primary {
			if _, err := c.Kubectl(ctx, "exec", pod, "--", "chmod", "0000", "/pgdata/data"); err != nil {
				return err
			}
		}
	}
	_, err = c.Kubectl(ctx, "delete", "pod", db.Status.Primary, "--force", "--wait=false")
	return err
}
