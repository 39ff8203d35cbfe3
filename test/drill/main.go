// Command drill breaks a running database in every way of its fault table and
// judges from outside what became of it: how long nobody could write, whether an
// acknowledged write is lost, whether two primaries acknowledged at once, whether
// the history is linearizable, and how long it took until all was whole again.
// docs/drillsfaults.md says what each number means. It needs the cluster of make up, root,
// and an otherwise idle machine.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rounds                    int
	only, skip, shape         string
	add                       bool
	soak                      time.Duration
	seed                      uint64
	stall                     time.Duration
	json, markdown, plot      string
	localkube                 string
	hold, lossy, patience     time.Duration
	slow                      time.Duration
	histories                 string
	listFaults, renderOnlyRun bool
}

func main() {
	o := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.IntVar(&o.rounds, "rounds", 1, "how often to make each fault")
	flag.StringVar(&o.only, "only", "", "names of faults, with commas; all if empty")
	flag.StringVar(&o.skip, "skip", "", "names of faults to leave out, with commas")
	flag.StringVar(&o.shape, "shape", usual,
		"the database: three, or, with fewer faults, five, two, pooled, relayed, busy or async")
	flag.DurationVar(&o.soak, "soak", 0, "for this long, make two faults at random in each round")
	flag.Uint64Var(&o.seed, "seed", 0, "with -soak: makes the same rounds again; 0 takes one from the clock")
	flag.DurationVar(&o.stall, "stall", 10*time.Second, "how long a disk stalls")
	flag.BoolVar(&o.add, "add", false, "keep the runs that the -json file has already")
	flag.StringVar(&o.json, "json", "", "file for the raw runs; it is written after each one")
	flag.StringVar(&o.markdown, "markdown", "",
		"file for the tables; between the marks of docs/drills.md or docs/soak.md if it has them")
	flag.StringVar(&o.plot, "plot", "", "file for the distributions as SVG")
	flag.StringVar(&o.localkube, "localkube", "bin/localkube", "localkube's program")
	flag.DurationVar(&o.hold, "hold", 30*time.Second, "how long writes may be away before a fault is healed")
	flag.DurationVar(&o.lossy, "lossy", 2*time.Minute, "how long lossy-and-busy lasts")
	flag.DurationVar(&o.patience, "patience", 4*time.Minute, "how long to wait until all is whole again")
	flag.DurationVar(&o.slow, "slow", 0,
		"keep the logs of rounds too in which no write got through to several hosts for longer than this")
	flag.StringVar(&o.histories, "histories", ".local", "folder for histories that are not linearizable, and for logs")
	flag.BoolVar(&o.listFaults, "list", false, "only show the faults")
	flag.BoolVar(&o.renderOnlyRun, "render", false,
		"only make the tables and the plot, from the runs in the -json file")
	flag.Parse()
	return o
}

func run(ctx context.Context, o options) error {
	like, err := shapeNamed(o.shape)
	if err != nil {
		return err
	}
	all := faults(o)
	chosen, err := choose(all, cmp.Or(o.only, like.faults), o.skip)
	if err != nil {
		return err
	}
	switch {
	case o.listFaults:
		for _, f := range chosen {
			fmt.Printf("%-34s %s\n", f.name, f.about)
		}
		return nil
	case o.renderOnlyRun:
		runs, err := readRuns(o.json)
		if err != nil {
			return err
		}
		return present(o, all, nil, runs)
	}
	if o.soak > 0 {
		if err := fitting(chosen); err != nil {
			return err
		}
		o.seed = cmp.Or(o.seed, uint64(time.Now().UnixNano()))
	}
	before, err := kept(o)
	if err != nil {
		return err
	}
	d, err := begin(ctx, o)
	if d != nil {
		defer d.end(ctx)
	}
	if err != nil {
		return err
	}
	runs, err := d.rounds(ctx, chosen, before)
	err = errors.Join(err, present(o, all, before, runs), verdict(runs))
	if o.soak > 0 {
		fmt.Printf("\n%s\n", summary(o.seed, runs))
	}
	return err
}

// kept are the runs to which this drill adds its own.
func kept(o options) ([]Run, error) {
	if !o.add {
		return nil, nil
	}
	runs, err := readRuns(o.json)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return runs, err
}

// choose picks faults by their names.
func choose(all []fault, only, skip string) ([]fault, error) {
	names := func(list string) []string {
		return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	}
	wanted, unwanted := names(only), names(skip)
	for _, name := range slices.Concat(wanted, unwanted) {
		if !slices.ContainsFunc(all, func(f fault) bool { return f.name == name }) {
			return nil, fmt.Errorf("no fault is called %q; -list shows them", name)
		}
	}
	var chosen []fault
	for _, f := range all {
		if (len(wanted) == 0 || slices.Contains(wanted, f.name)) && !slices.Contains(unwanted, f.name) {
			chosen = append(chosen, f)
		}
	}
	return chosen, nil
}

// turn is one fault to be made, and what is said of it.
type turn struct {
	fault fault
	round int
	title string
}

// turns are the rounds, each with every fault, so that a slow change of the machine
// does not hit one fault alone.
func turns(rounds int, chosen []fault) iter.Seq[turn] {
	return func(yield func(turn) bool) {
		for i := range rounds {
			for _, f := range chosen {
				if !yield(turn{f, i + 1, fmt.Sprintf("round %d of %d: %s", i+1, rounds, f.name)}) {
					return
				}
			}
		}
	}
}

// rounds makes all rounds: those of the soak, or those that are asked for.
func (d *drill) rounds(ctx context.Context, chosen []fault, before []Run) ([]Run, error) {
	order := turns(d.options.rounds, chosen)
	if d.options.soak > 0 {
		order = d.soak(chosen)
	}
	var runs []Run
	for t := range order {
		if ctx.Err() != nil {
			return runs, ctx.Err()
		}
		d.say("%s: %s", t.title, t.fault.about)
		r, err := d.round(ctx, t.fault)
		if ctx.Err() != nil {
			return runs, ctx.Err()
		}
		r.Round = t.round
		d.note(ctx, &r, err)
		runs = append(runs, r)
		d.tell(r)
		if err := writeRuns(d.options.json, slices.Concat(before, runs)); err != nil {
			return runs, err
		}
		if err != nil {
			if err := d.renew(ctx); err != nil {
				return runs, err
			}
		}
	}
	return runs, nil
}

// note adds what went wrong with a round, and keeps what there is to learn from it.
func (d *drill) note(ctx context.Context, r *Run, err error) {
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	if len(r.Problems) > 0 || r.Needless > 0 {
		r.Problems = append(r.Problems, d.keepLogs(ctx, r)...)
		return
	}
	if slow := d.options.slow; slow > 0 && r.Multi > slow.Seconds() {
		d.say("%s was slow: %s", r.Fault, strings.Join(d.keepLogs(ctx, r), ", "))
	}
}

// verdict is an error if something happened that must never happen.
func verdict(runs []Run) error {
	var errs []error
	for _, r := range runs {
		for _, p := range r.wrongs() {
			errs = append(errs, fmt.Errorf("%s, round %d: %s", r.Fault, r.Round, p))
		}
	}
	return errors.Join(errs...)
}
