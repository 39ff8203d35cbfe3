// Command connections measures what each way to a SampleDB costs: pgbench through a Service that leads to the primary,
// through one that leads to all instances and has clients passed on, through a pooler, and through a PgBouncer that
// somebody has set up by hand beside it. All take turns in one run. It needs the cluster of make up, as root, and an
// otherwise idle machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"toban.dev/test/outside"
	"toban.dev/test/plot"
)

type options struct {
	rounds, clients int
	each            time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "n", 5, "how often to measure each")
	flag.IntVar(&o.clients, "clients", 16, "how many clients pgbench has")
	flag.DurationVar(&o.each, "each", 10*time.Second, "how long each measurement lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "connections:", err)
		os.Exit(1)
	}
}

// kind is what the clients do.
type kind struct {
	name      string
	arguments []string
}

// kinds are reading and writing in sessions that stay, and reading with a session for each transaction.
var kinds = []kind{
	{"read", []string{"-S", "-M", "prepared"}},
	{"write", []string{"-M", "prepared"}},
	{"connect and read", []string{"-S", "-C"}},
}

// result is one measurement: transactions in a second, and what one takes.
type result struct{ perSecond, milliseconds float64 }

func run(ctx context.Context, o options) (err error) {
	ways, remove, err := begin(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	if _, err := outside.Pgbench(ctx, ways[0].access, "-i", "-q", "-s", "10"); err != nil {
		return err
	}
	for _, k := range kinds {
		all := map[string][]result{}
		for range o.rounds {
			for _, w := range ways {
				one, err := measure(ctx, o, k, w.access)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", k.name, w.name, err)
				}
				all[w.name] = append(all[w.name], one)
			}
		}
		if err := report(k, ways, all); err != nil {
			return err
		}
	}
	return nil
}

func measure(ctx context.Context, o options, k kind, access outside.Access) (result, error) {
	text, err := outside.Pgbench(ctx, access, append(slices.Clone(k.arguments), "-n", "-c", strconv.Itoa(o.clients),
		"-T", strconv.Itoa(int(o.each.Seconds())))...)
	if err != nil {
		return result{}, err
	}
	perSecond, err := number(text, `(?m)^tps = ([0-9.]+)`)
	if err != nil {
		return result{}, err
	}
	milliseconds, err := number(text, `(?m)^latency average = ([0-9.]+) ms`)
	return result{perSecond, milliseconds}, err
}

// number is what pgbench says at a place.
func number(text, pattern string) (float64, error) {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("pgbench does not say %s: %s", pattern, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return 0, fmt.Errorf("understand pgbench: %w", err)
	}
	return value, nil
}

// report prints the medians, and each way against the first and against the PgBouncer by hand.
func report(k kind, ways []way, all map[string][]result) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\ttransactions/s, median\tleast\tmost\tn\tms each\tof the Service's\n", k.name)
	of := func(name string, value func(result) float64) []float64 {
		var out []float64
		for _, r := range all[name] {
			out = append(out, value(r))
		}
		return out
	}
	rate := func(r result) float64 { return r.perSecond }
	first := plot.Quantile(of(ways[0].name, rate), 0.5)
	for _, w := range ways {
		rates := of(w.name, rate)
		median := plot.Quantile(rates, 0.5)
		took := plot.Quantile(of(w.name, func(r result) float64 { return r.milliseconds }), 0.5)
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%d\t%.2f\t%.0f %%\n", w.name, median, slices.Min(rates),
			slices.Max(rates), len(rates), took, 100*median/first)
	}
	return table.Flush()
}
