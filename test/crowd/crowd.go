// Package crowd has many SampleDBs on one small machine, and sees what they do there: whether they elect without a
// cause, and what they cost. The benchmark and the stories of it are about the same things.
package crowd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Crowd are SampleDBs of three instances each in a namespace.
type Crowd struct {
	outside.Namespace
	Names []string
}

// New is a crowd that is not there yet.
func New(in outside.Namespace, databases int) Crowd {
	c := Crowd{Namespace: in}
	for i := range databases {
		c.Names = append(c.Names, fmt.Sprintf("crowd-%d", i))
	}
	return c
}

// Create makes them all at once. More is YAML of the spec, in one line.
func (c Crowd) Create(ctx context.Context, more string) error {
	manifests := ""
	for _, name := range c.Names {
		manifests += fmt.Sprintf("---\napiVersion: toban.dev/v1\nkind: SampleDB\nmetadata: {name: %s}\n"+
			"spec: {version: 17, instances: 3, storage: {size: 512Mi}%s}\n", name, more)
	}
	return c.Apply(ctx, manifests)
}

// Ready waits until all are ready, and returns how long the last one took.
func (c Crowd) Ready(ctx context.Context, within time.Duration) (time.Duration, error) {
	began := time.Now()
	for _, name := range c.Names {
		err := outside.Until(ctx, max(within-time.Since(began), time.Second), func(ctx context.Context) error {
			db, err := c.SampleDB(ctx, name)
			if err != nil {
				return err
			}
			return outside.Condition(db, v1.ConditionReady, "True", "")
		})
		if err != nil {
			return time.Since(began), err
		}
	}
	return time.Since(began), nil
}

// Terms are the terms of all, by what is on record in their Leases.
func (c Crowd) Terms(ctx context.Context) (map[string]uint64, error) {
	terms := map[string]uint64{}
	for _, name := range c.Names {
		var lease coordinationv1.Lease
		if err := c.Get(ctx, "lease/"+name, &lease); err != nil {
			return nil, err
		}
		var m ha.HardState
		if err := json.Unmarshal([]byte(lease.Annotations[naming.AnnotationElection]), &m); err != nil {
			return nil, fmt.Errorf("understand the record in the Lease %s: %w", name, err)
		}
		terms[name] = m.Ballot.Term
	}
	return terms, nil
}

// Elections is how many terms there were in all since some were read, and the most of one.
func (c Crowd) Elections(ctx context.Context, since map[string]uint64) (all, most uint64, err error) {
	now, err := c.Terms(ctx)
	if err != nil {
		return 0, 0, err
	}
	for name, term := range now {
		all, most = all+term-since[name], max(most, term-since[name])
	}
	return all, most, nil
}

// TakeWrites waits until each of them takes a write.
func (c Crowd) TakeWrites(ctx context.Context, within time.Duration) error {
	var group sync.WaitGroup
	errs := make([]error, len(c.Names))
	for i, name := range c.Names {
		group.Go(func() {
			errs[i] = outside.Until(ctx, within, func(ctx context.Context) error {
				access, err := c.Access(ctx, name, naming.ReadWriteService(name))
				if err != nil {
					return err
				}
				return access.Do(ctx, "CREATE TABLE IF NOT EXISTS crowd (at timestamptz DEFAULT now()); "+
					"INSERT INTO crowd DEFAULT VALUES")
			})
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Pgbench has pgbench (TPC-B) at each of them for a time, and returns the transactions a second of all.
func (c Crowd) Pgbench(ctx context.Context, clients int, lasts time.Duration) (tps float64, err error) {
	var group sync.WaitGroup
	results, errs := make([]outside.Bench, len(c.Names)), make([]error, len(c.Names))
	for i, name := range c.Names {
		group.Go(func() {
			access, err := c.Access(ctx, name, naming.ReadWriteService(name))
			if err == nil {
				_, err = outside.Pgbench(ctx, access, "--initialize", "--quiet", "--scale=2")
			}
			if errs[i] = err; err == nil {
				during, cancel := context.WithTimeout(ctx, lasts)
				defer cancel()
				results[i] = outside.PgbenchAgain(during, access, min(lasts, 30*time.Second),
					fmt.Sprintf("--client=%d", clients))
			}
		})
	}
	group.Wait()
	for _, r := range results {
		tps += r.TPS
	}
	return tps, errors.Join(errs...)
}

// Loop keeps processors busy by so many loops, outside of the cluster, for a time.
func Loop(ctx context.Context, loops int, lasts time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, loops)
	for i := range loops {
		group.Go(func() {
			err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Run()
			if ctx.Err() == nil {
				errs[i] = fmt.Errorf("keep a processor busy: %w", err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Without are the others of a crowd, without some.
func (c Crowd) Without(without ...string) Crowd {
	all := map[string]bool{}
	for _, name := range c.Names {
		all[name] = !slices.Contains(without, name)
	}
	maps.DeleteFunc(all, func(_ string, in bool) bool { return !in })
	return Crowd{c.Namespace, slices.Sorted(maps.Keys(all))}
}
