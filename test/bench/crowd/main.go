// Command crowd measures what many SampleDBs do on one small machine: how long they take when all are made at once,
// what they cost at rest, and whether they elect without a cause when the machine is busy, when one of them is in
// trouble, and when the kernel holds them to a CPU limit. It needs the cluster of make up, and an otherwise idle
// machine. It ends with an error where something is not as docs/busy.md promises.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"toban.dev/test/crowd"
	"toban.dev/test/outside"
)

const namespace = outside.Namespace("bench-crowd")

// options are how much is measured.
type options struct {
	databases            int
	rest, busy, limited  time.Duration
	cpu                  string
	look                 time.Duration
	readyWithin, settles time.Duration
	stages               string
}

// stages are what is measured, in this order.
const stages = "create,rest,busy,trouble,limited"

func main() {
	var o options
	flag.IntVar(&o.databases, "databases", 5, "how many SampleDBs of three instances there are")
	flag.DurationVar(&o.rest, "rest", 10*time.Minute, "how long they are at rest")
	flag.DurationVar(&o.busy, "busy", 2*time.Minute, "how long twice as many loops as processors run beside them")
	flag.DurationVar(&o.limited, "limited", 10*time.Minute, "how long pgbench runs at all of them under a CPU limit")
	flag.DurationVar(&o.look, "look", 2*time.Minute, "how long is measured what one in trouble costs")
	flag.StringVar(&o.cpu, "cpu", "200m", "that limit")
	flag.DurationVar(&o.readyWithin, "ready", 2*time.Minute, "within what all are to be ready that were made at once")
	flag.DurationVar(&o.settles, "settles", time.Minute, "within what all are to take writes after it")
	flag.StringVar(&o.stages, "stages", stages, "what is measured; all but limited needs create before it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.databases <= len(crowd.Troubles) {
		return fmt.Errorf("%d databases are too few: %d of them get into trouble, and others are to not notice",
			o.databases, len(crowd.Troubles))
	}
	for _, name := range strings.Split(o.stages, ",") {
		if !slices.Contains(strings.Split(stages, ","), name) {
			return fmt.Errorf("%q is no stage: there are %s", name, stages)
		}
	}
	if _, err := namespace.Kubectl(ctx, "create", "namespace", string(namespace)); err != nil {
		return err
	}
	defer func() { // the next run says so if that fails
		_, _ = namespace.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", string(namespace))
	}()
	b := &bench{options: o, crowd: crowd.New(namespace, o.databases)}
	all := map[string]func(context.Context) error{
		"create": b.create, "rest": b.atRest, "busy": b.isBusy, "trouble": b.inTrouble, "limited": b.isLimited,
	}
	wanted := strings.Split(o.stages, ",")
	for _, name := range strings.Split(stages, ",") {
		if !slices.Contains(wanted, name) {
			continue
		}
		if err := all[name](ctx); err != nil {
			return err
		}
	}
	if b.broken > 0 {
		return fmt.Errorf("%d rows are not as promised", b.broken)
	}
	return nil
}

// bench measures, and counts what is not as promised.
type bench struct {
	options

	crowd  crowd.Crowd
	broken int
}

// row prints one, with what is promised.
func (b *bench) row(what, measured, promised string, kept bool) {
	mark := ""
	if !kept {
		b.broken++
		mark = "  NOT KEPT"
	}
	fmt.Printf("%-52s %-34s %s%s\n", what, measured, promised, mark)
}

// elections has something done, and prints how many there were meanwhile.
func (b *bench) elections(ctx context.Context, c crowd.Crowd, what string, most uint64, do func() error) error {
	before, err := c.Terms(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	all, one, err := c.Elections(ctx, before)
	if err != nil {
		return err
	}
	b.row(what, fmt.Sprintf("%d elections, %d at most of one", all, one), fmt.Sprintf("%d each at most", most),
		one <= most)
	return nil
}

// create makes all at once, and one more when they are ready.
func (b *bench) create(ctx context.Context) error {
	if err := b.crowd.Create(ctx, ""); err != nil {
		return err
	}
	took, err := b.crowd.Ready(ctx, 10*b.readyWithin)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("%d made at once: all are ready", b.databases), took.Round(time.Second).String(),
		b.readyWithin.String(), took <= b.readyWithin)
	return b.elections(ctx, b.crowd, "one more is made beside them", 0, func() error {
		one := crowd.Crowd{Namespace: namespace, Names: []string{"crowd-more"}}
		if err := one.Create(ctx, ""); err != nil {
			return err
		}
		if _, err := one.Ready(ctx, 10*b.readyWithin); err != nil {
			return err
		}
		_, err := namespace.Kubectl(ctx, "delete", "sampledb", "crowd-more", "--timeout=3m")
		return err
	})
}

// atRest measures what they cost at rest.
func (b *bench) atRest(ctx context.Context) error {
	time.Sleep(30 * time.Second) // first backups and checkpoints
	return b.elections(ctx, b.crowd, fmt.Sprintf("at rest for %s", b.rest), 0, func() error {
		u, err := crowd.Measure(ctx, b.rest)
		if err != nil {
			return err
		}
		each := u.Each(crowd.Agents)
		b.row("at rest: an agent", fmt.Sprintf("%.4f of a processor", each), "0.01", each <= 0.01)
		for _, kind := range []string{crowd.Servers, crowd.Operator, crowd.APIServer, crowd.Nodes} {
			b.row("at rest: "+kind, fmt.Sprintf("%.4f of a processor", u.Cores[kind]), "", true)
		}
		b.row("at rest: processes made in a minute", fmt.Sprintf("%.0f", u.Forks), "", true)
		return nil
	})
}

// isBusy keeps the processors busy.
func (b *bench) isBusy(ctx context.Context) error {
	loops := 2 * runtime.NumCPU()
	err := b.elections(ctx, b.crowd, fmt.Sprintf("%d busy loops for %s", loops, b.busy), 1,
		func() error { return crowd.Loop(ctx, loops, b.busy) })
	if err != nil {
		return err
	}
	began := time.Now()
	err = b.crowd.TakeWrites(ctx, 10*b.settles)
	b.row("and then all take writes", time.Since(began).Round(100*time.Millisecond).String(), b.settles.String(),
		err == nil && time.Since(began) <= b.settles)
	return err
}
