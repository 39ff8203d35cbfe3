package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
)

type stopOptions struct {
	await.Watched
	// stop is what is asked for; otherwise it is a start.
	stop bool
}

// Stop is `toban stop`: it stops a SampleDB, which keeps its data.
func Stop() *cobra.Command {
	o := stopOptions{stop: true}
	c := &cobra.Command{
		Use:   "stop NAME",
		Short: "Stop a SampleDB, which keeps its data and costs nothing but its volumes",
		Long: "Sets spec.stopped, and shows each step. Clients are sent away, the standbys and the archive get the\n" +
			"last of the WAL, and then the Pods end. The volumes, the Secrets, the Services and the archive stay.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	o.Flags(c.Flags(), "wait for the outcome", 10*time.Minute)
	return c
}

// Start is `toban start`: it starts a SampleDB that was stopped.
func Start() *cobra.Command {
	var o stopOptions
	c := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a SampleDB that was stopped",
		Long: "Sets spec.stopped to false, and waits until an instance takes writes. While one of spec.stopWindows\n" +
			"is open, it starts the database before that ends; the next window stops it again. One that sleeps\n" +
			"(spec.sleepAfter) is woken.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	o.Flags(c.Flags(), "wait for the outcome", 10*time.Minute)
	return c
}

func (o *stopOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, before, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	if err := cluster.Patch(ctx, api, before, stopPatch(before, o.stop, time.Now())); err != nil {
		return fmt.Errorf("set spec.stopped: %w", err)
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: spec.stopped is %t\n", name, o.stop)
		return nil
	}
	return o.await(ctx, out, api, before)
}

// stopPatch sets spec.stopped. A start also says that what is open now of spec.stopWindows does not count, and wakes a
// database that sleeps.
func stopPatch(db *v1.SampleDB, stop bool, now time.Time) []byte {
	if stop || len(db.Spec.StopWindows) == 0 && db.Spec.SleepAfter == "" {
		return fmt.Appendf(nil, `{"spec":{"stopped":%t}}`, stop)
	}
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}},"spec":{"stopped":false}}`,
		naming.AnnotationStarted, now.UTC().Format(time.RFC3339))
}

// await shows each step until nothing runs any more, or an instance takes writes.
func (o *stopOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	late := fmt.Sprintf("it has not ended after %s; it goes on. `kubectl toban status %s` says how far it is",
		o.Timeout, before.Name)
	told := await.Lines{Out: out}
	return o.Watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		if db.Spec.Stopped != o.stop {
			return false, errors.New("somebody has changed spec.stopped meanwhile")
		}
		told.Tell(stopLine(db))
		return stopEnded(db, o.stop), nil
	})
}

// stopEnded says that what was asked for is so, and that the operator has seen it.
func stopEnded(db *v1.SampleDB, stop bool) bool {
	if db.Status.ObservedGeneration < db.Generation {
		return false
	}
	if stop {
		return db.Status.Stop != nil && db.Status.Stop.Step == v1.StopStopped
	}
	return db.Status.Stop == nil && db.Status.Primary != ""
}

// stopLine says how far a stop or a start is, "" where there is nothing to say yet.
func stopLine(db *v1.SampleDB) string {
	s := db.Status.Stop
	switch {
	case s != nil:
		return fmt.Sprintf("%s: %s: %s", db.Name, s.Step, s.Message)
	case db.Status.Primary != "" && !db.Spec.Stopped:
		return fmt.Sprintf("%s: %s takes writes", db.Name, db.Status.Primary)
	}
	return ""
}
