// Command upgrade measures for how long nobody can write while PostgreSQL moves to another version: a SampleDB that is
// upgraded in place to another major version, and by its side, in the same run, a server that somebody upgrades by hand
// with pg_upgrade, as fast as a script can. Both have the same rows, and link their files. With -kind it measures a
// SampleDB alone that takes a newer minor version over, or that moves to another major one by a second side, and home.
// It needs the cluster of make up, as root, and an otherwise idle machine.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"toban.dev/test/outside"
	"toban.dev/test/plot"
)

type options struct {
	rounds, gigabytes, instances int
	from, to                     int
	kind, only                   string
}

func main() {
	var o options
	flag.StringVar(&o.kind, "kind", "inplace", "what to measure: inplace or bluegreen (a major version), or minor")
	flag.IntVar(&o.rounds, "n", 5, "how often to measure each")
	flag.IntVar(&o.gigabytes, "size", 2, "how many GB of rows there are")
	flag.IntVar(&o.instances, "instances", 0, "how many instances the SampleDB has (default 1, with -kind minor 3)")
	flag.IntVar(&o.from, "from", 0, "the former major version (default 15, with -kind bluegreen 17)")
	flag.IntVar(&o.to, "to", 0, "the new major version (default 17, with -kind bluegreen 18)")
	flag.StringVar(&o.only, "only", "", "measure only Toban or only hand")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// measured is one change, as its writer saw it.
type measured struct {
	what               string
	outage             time.Duration
	acknowledged, lost int
}

// way is one in which versions change.
type way struct {
	name string
	once func(context.Context, options) ([]measured, error)
}

func run(ctx context.Context, o options) error {
	k, known := kinds[o.kind]
	if !known {
		return fmt.Errorf("-kind %s: it is inplace, minor or bluegreen", o.kind)
	}
	o.from, o.to, o.instances = cmp.Or(o.from, k.from), cmp.Or(o.to, k.to), cmp.Or(o.instances, k.instances)
	var names []string
	all := map[string][]measured{}
	for i := range o.rounds {
		for _, way := range k.ways {
			if o.only != "" && o.only != way.name {
				continue
			}
			found, err := way.once(ctx, o)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", i+1, way.name, err)
			}
			for _, m := range found {
				name := strings.TrimSpace(way.name + " " + m.what)
				fmt.Fprintf(os.Stderr, "round %d, %s: no write for %.1f s, %d of %d rows lost\n", i+1, name,
					m.outage.Seconds(), m.lost, m.acknowledged)
				if len(all[name]) == 0 {
					names = append(names, name)
				}
				all[name] = append(all[name], m)
			}
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "way\tno write for, median\tleast\tmost\tn\trows lost\tof")
	for _, name := range names {
		line(table, name, all[name])
	}
	return table.Flush()
}

func line(table *tabwriter.Writer, name string, all []measured) {
	var seconds []float64
	var lost, acknowledged int
	for _, m := range all {
		seconds = append(seconds, m.outage.Seconds())
		lost, acknowledged = lost+m.lost, acknowledged+m.acknowledged
	}
	fmt.Fprintf(table, "%s\t%.1f s\t%.1f s\t%.1f s\t%d\t%d\t%d\n", name, plot.Quantile(seconds, 0.5),
		slices.Min(seconds), slices.Max(seconds), len(all), lost, acknowledged)
}

// fill makes rows of so many GB, in tables of a quarter each with an index, that are written to disk.
func fill(ctx context.Context, access outside.Access, gigabytes int) error {
	for part := range 4 * gigabytes {
		err := access.Do(ctx, fmt.Sprintf("CREATE TABLE rows_%d AS SELECT i, repeat(md5(i::text), 30) AS text "+
			"FROM generate_series(1, 250000) AS i; ALTER TABLE rows_%[1]d ADD PRIMARY KEY (i)", part))
		if err != nil {
			return err
		}
	}
	return access.Do(ctx, "VACUUM ANALYZE")
}

// change is what is done while a writer writes. There may be several in one round: what says which.
type change struct {
	what string
	do   func(context.Context) error
}

// watch writes through the whole of each change, and says what the writer saw.
func watch(ctx context.Context, access outside.Access, changes ...change) (all []measured, err error) {
	writer, err := outside.StartWriter(ctx, access)
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		if i > 0 {
			writer.Resume(ctx)
		}
		err := through(ctx, access, c)
		writer.Stop()
		if err != nil {
			return nil, err
		}
		lost, err := writer.Lost(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, measured{c.what, writer.Outage(), writer.Acknowledged(), len(lost)})
	}
	return all, nil
}

// through makes a change. The writer writes a hundred rows a second: some of before and of after belong to it.
func through(ctx context.Context, access outside.Access, c change) error {
	if err := grown(ctx, access, 50); err != nil {
		return err
	}
	if err := c.do(ctx); err != nil {
		return err
	}
	return grown(ctx, access, 50)
}

// grown waits until there are so many rows more of a writer.
func grown(ctx context.Context, access outside.Access, more int) error {
	const count = "SELECT count(*) FROM acknowledged"
	var before string
	err := outside.Until(ctx, patience, func(ctx context.Context) (err error) { // clients may not be let in yet
		before, err = access.Ask(ctx, count)
		return err
	})
	if err != nil {
		return err
	}
	enough := fmt.Sprintf("SELECT (%s) >= %s + %d", count, before, more)
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		there, err := access.Ask(ctx, enough)
		if err == nil && there != "true" {
			err = fmt.Errorf("there are no %d rows more", more)
		}
		return err
	})
}
