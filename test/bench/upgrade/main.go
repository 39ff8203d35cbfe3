// Command upgrade measures for how long nobody can write while PostgreSQL moves to another major version: a SampleDB
// that is upgraded in place, and by its side, in the same run, a server that somebody upgrades by hand with pg_upgrade,
// as fast as a script can. Both have the same rows, and link their files. It needs the cluster of make up, as root, and
// an otherwise idle machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"toban.dev/test/outside"
	"toban.dev/test/plot"
)

type options struct {
	rounds, gigabytes, instances int
	from, to                     int
	only                         string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "n", 5, "how often to measure each")
	flag.IntVar(&o.gigabytes, "size", 2, "how many GB of rows to upgrade")
	flag.IntVar(&o.instances, "instances", 1, "how many instances the SampleDB has")
	flag.IntVar(&o.from, "from", 15, "the former major version")
	flag.IntVar(&o.to, "to", 17, "the new major version")
	flag.StringVar(&o.only, "only", "", "measure only Toban or only hand")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// measured is one upgrade, as its writer saw it.
type measured struct {
	outage             time.Duration
	acknowledged, lost int
}

// way is one in which an upgrade is made.
type way struct {
	name string
	once func(context.Context, options) (measured, error)
}

func run(ctx context.Context, o options) error {
	ways := []way{{"Toban", onCluster}, {"hand", byHand}}
	if o.only != "" {
		ways = slices.DeleteFunc(ways, func(w way) bool { return w.name != o.only })
	}
	all := map[string][]measured{}
	for i := range o.rounds {
		for _, way := range ways {
			m, err := way.once(ctx, o)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", i+1, way.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d, %s: no write for %.1f s, %d of %d rows lost\n", i+1, way.name,
				m.outage.Seconds(), m.lost, m.acknowledged)
			all[way.name] = append(all[way.name], m)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "way\tno write for, median\tleast\tmost\tn\trows lost\tof")
	for _, way := range ways {
		line(table, way.name, all[way.name])
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
			"FROM generate_series(1, 250000) AS i; CREATE UNIQUE INDEX ON rows_%[1]d (i)", part))
		if err != nil {
			return err
		}
	}
	return access.Do(ctx, "VACUUM ANALYZE")
}

// watch writes through the whole of an upgrade, and says what the writer saw.
func watch(ctx context.Context, access outside.Access, upgrade func(context.Context) error) (measured, error) {
	writer, err := outside.StartWriter(ctx, access)
	if err != nil {
		return measured{}, err
	}
	// The writer writes a hundred rows a second: some of before and of after belong to it.
	err = grown(ctx, access, 50)
	if err == nil {
		err = upgrade(ctx)
	}
	if err == nil {
		err = grown(ctx, access, 50)
	}
	writer.Stop()
	if err != nil {
		return measured{}, err
	}
	lost, err := writer.Lost(ctx)
	return measured{writer.Outage(), writer.Acknowledged(), len(lost)}, err
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
