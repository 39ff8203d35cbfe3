// Command demo shows Toban at work on a running cluster: a database is made, filled and put under load, its primary's
// Pod is deleted, and the rows that were acknowledged are counted. At the end the database itself is deleted, and
// brought back. It looks from outside, as a user does. It ends with an error if one is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"toban.dev/test/outside"
)

type options struct {
	manifest, timings, namespace string
	scale                        int
	load                         time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.manifest, "manifest", "config/examples/example-database.yaml", "SampleDB to make")
	flag.StringVar(&o.namespace, "namespace", "default", "where to make it")
	flag.StringVar(&o.timings, "timings", "", "file with the timings of what came before, one NAME<tab>SECONDS a line")
	flag.IntVar(&o.scale, "scale", 10, "pgbench's scale: 100,000 rows each")
	flag.DurationVar(&o.load, "load", 20*time.Second, "how long to keep the load up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

// run tells the story in its order.
func run(ctx context.Context, o options) error {
	d := demo{options: o, user: outside.Namespace(o.namespace), screen: newScreen(os.Stdout)}
	before, err := readTimings(o.timings)
	if err != nil {
		return err
	}
	d.report.stages = before
	for _, chapter := range []func(context.Context) error{
		d.create, d.show, d.fill, d.disturb, d.count, d.deleteAndUndelete,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	d.report.print(d.screen)
	if d.report.lost > 0 {
		return fmt.Errorf("%d acknowledged rows are lost", d.report.lost)
	}
	if d.report.acknowledged == 0 {
		return errors.New("the writer was never told that a row is committed")
	}
	return nil
}
