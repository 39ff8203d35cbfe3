package main

import (
	"context"
	"fmt"

	"toban.dev/test/crowd"
)

// shared are what all databases of a machine share: what one in trouble makes them do is taken from the others.
var shared = []string{crowd.Operator, crowd.APIServer, crowd.Nodes}

// mostMore is by how much more of a processor they may take, all together.
const mostMore = 0.1

// inTrouble has one of them in trouble. The others must not notice.
func (b *bench) inTrouble(ctx context.Context) error {
	rest, err := crowd.Measure(ctx, b.look)
	if err != nil {
		return err
	}
	for i, t := range crowd.Troubles {
		name := b.crowd.Names[i%len(b.crowd.Names)]
		others := b.crowd.Without(b.crowd.Names[:min(i+1, len(b.crowd.Names)-1)]...)
		err := b.elections(ctx, others, t.What+": the others", 0, func() error {
			if err := t.Make(ctx, b.crowd, name); err != nil {
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
func (b *bench) mended(ctx context.Context, t crowd.Trouble, name string) error {
	if !t.Mends {
		return nil
	}
	one := crowd.Crowd{Namespace: namespace, Names: []string{name}}
	err := one.TakeWrites(ctx, b.settles)
	b.row("… and it takes writes itself", fmt.Sprint(err == nil), "true", err == nil)
	return nil
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
