package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
)

type restartOptions struct {
	await.Watched
	instance string
}

// Restart is `toban restart`: it restarts the servers of a SampleDB in order.
func Restart() *cobra.Command {
	var o restartOptions
	c := &cobra.Command{
		Use:   "restart NAME",
		Short: "Restart the PostgreSQL servers of a SampleDB, one after the other",
		Long: "Restarts the standbys one by one; then the primary hands over and restarts as a standby. For a\n" +
			"second or two no writes are possible. The Pods stay. The command sets the annotation\n" +
			naming.AnnotationRestart + ", which the operator reads.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	f := c.Flags()
	o.Flags(f, "wait for the outcome", 10*time.Minute)
	f.StringVar(&o.instance, "instance", "", "restart only the server of this instance")
	return c
}

// AskRestart asks for a restart of an instance's server, "" for those of all, and does not wait.
func AskRestart(ctx context.Context, at cluster.Cluster, out io.Writer, name, instance string) error {
	return (&restartOptions{Watched: await.Watched{Cluster: at}, instance: instance}).run(ctx, out, name)
}

func (o *restartOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, db, err := o.Find(ctx, name)
	switch {
	case err != nil:
		return err
	case db.Status.Stop != nil:
		return fmt.Errorf("the SampleDB %s is stopped, or is about to be or to start: %s", name, db.Status.Stop.Message)
	case db.Annotations[naming.AnnotationRestart] != "":
		return fmt.Errorf("a restart of %s is under way: `kubectl toban status %s` says how far it is. To give it up: "+
			"kubectl annotate sampledb %s %s-", name, name, name, naming.AnnotationRestart)
	}
	asked := cmp.Or(o.instance, naming.RestartAll)
	if err := cluster.Request(ctx, api, db, naming.AnnotationRestart, asked); err != nil {
		return fmt.Errorf("ask for the restart: %w", err)
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: a restart of %s is asked for\n", name, asked)
		return nil
	}
	return o.await(ctx, out, api, db)
}

// await shows how far the restart is until it has ended, which is when the request is gone.
func (o *restartOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	told, gone := await.Lines{Out: out, Of: before.Name}, time.Time{}
	late := fmt.Sprintf("the restart has not ended after %s; it goes on. `kubectl toban status %s` says how far it is",
		o.Timeout, before.Name)
	return o.Watch(ctx, api, before, late, func(db *v1.SampleDB) (bool, error) {
		r, asked := db.Status.Restart, db.Annotations[naming.AnnotationRestart] != ""
		switch {
		case r.Ended() && equality.Semantic.DeepEqual(r, before.Status.Restart), asked && r == nil:
			return false, nil // that of before, or none yet
		case r == nil:
			// The operator removes the request, and then writes the status that says how it has ended.
			if gone.IsZero() {
				gone = time.Now()
			}
			if time.Since(gone) < await.StatusPatience {
				return false, nil
			}
			return true, errors.New("the restart was given up")
		case r.Step == v1.RestartRefused:
			return true, errors.New("the restart is refused: " + r.Message)
		}
		told.Tell(r.Message)
		return r.Ended(), nil
	})
}
