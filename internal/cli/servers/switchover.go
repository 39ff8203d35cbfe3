package servers

import (
	"cmp"
	"context"
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

const (
	// switchoverPoll is how often it is looked whether a switchover is over.
	switchoverPoll = 300 * time.Millisecond
	// switchoverRequest is how long one answer of the API may take.
	switchoverRequest = 10 * time.Second
)

type switchoverOptions struct {
	await.Watched
	to string
}

// Switchover is `toban switchover`: it asks for another primary.
func Switchover() *cobra.Command {
	var o switchoverOptions
	c := &cobra.Command{
		Use:   "switchover NAME",
		Short: "Make another instance of a SampleDB the primary, without losing anything",
		Long: "Asks the primary to hand over to another instance. For a second or two no writes are possible.\n" +
			"The command sets the annotation " + naming.AnnotationSwitchover + ", which the operator reads.",
		Args: cobra.ExactArgs(1),
		RunE: o.Acts(o.run),
	}
	f := c.Flags()
	o.Flags(f, "wait for the outcome", time.Minute)
	f.StringVar(&o.to, "to", "", "the instance that should be primary (default: any)")
	return c
}

// AskSwitchover asks for another primary, "" for any, and does not wait.
func AskSwitchover(ctx context.Context, at cluster.Cluster, out io.Writer, name, to string) error {
	return (&switchoverOptions{Watched: await.Watched{Cluster: at}, to: to}).run(ctx, out, name)
}

func (o *switchoverOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, before, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	to := cmp.Or(o.to, naming.SwitchoverAny)
	if err := ask(ctx, api, before, to); err != nil {
		return err
	}
	if !o.Wait {
		fmt.Fprintf(out, "%s: a switchover to %s is asked for\n", name, to)
		return nil
	}
	return o.await(ctx, out, api, before)
}

// ask sets the annotation, and removes what is left of an earlier request.
func ask(ctx context.Context, api client.Client, db *v1.SampleDB, to string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:null,%q:null}}}`,
		naming.AnnotationSwitchover, to, naming.AnnotationSwitchoverFrom, naming.AnnotationSwitchoverRefused)
	if err := cluster.Patch(ctx, api, db, patch); err != nil {
		return fmt.Errorf("ask for the switchover: %w", err)
	}
	return nil
}

// await looks until the operator has taken the annotation away and its status
// shows who leads.
func (o *switchoverOptions) await(ctx context.Context, out io.Writer, api client.Client, before *v1.SampleDB) error {
	limit, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	late := func(last error) error { return o.late(before.Name, last) }
	return await.Until(limit, switchoverPoll, late, func() (bool, error) {
		db, err := o.look(ctx, api, before.Name)
		if err != nil {
			return false, await.Again(err)
		}
		over, err := o.outcome(before, db)
		if over && err == nil {
			fmt.Fprintf(out, "%s: %s takes writes (before: %s)\n",
				db.Name, db.Status.Primary, cmp.Or(before.Status.Primary, "none"))
		}
		return over, err
	})
}

// look reads the SampleDB. The request has a time of its own: one that the limit of the whole cut short would look
// as if the API did not answer.
func (o *switchoverOptions) look(ctx context.Context, api client.Client, name string) (*v1.SampleDB, error) {
	ctx, cancel := context.WithTimeout(ctx, switchoverRequest)
	defer cancel()
	return o.Read(ctx, api, name)
}

// outcome says whether the switchover is over; with an error where it is refused.
func (o *switchoverOptions) outcome(before, now *v1.SampleDB) (bool, error) {
	if before.UID != now.UID {
		return false, await.MadeAnew(now)
	}
	if now.Annotations[naming.AnnotationSwitchover] != "" {
		return false, nil
	}
	if sentence := now.Annotations[naming.AnnotationSwitchoverRefused]; sentence != "" {
		return false, fmt.Errorf("the switchover is refused: %s", sentence)
	}
	primary := now.Status.Primary
	if o.to == "" {
		return primary != "" && primary != before.Status.Primary, nil
	}
	return primary == o.to, nil
}

func (o *switchoverOptions) late(name string, last error) error {
	if last != nil {
		return fmt.Errorf("the outcome is not known after %s: %w", o.Timeout, last)
	}
	return fmt.Errorf("the switchover is not over after %s; `kubectl describe sampledb %s` says how far it is. "+
		"To take the request back: kubectl annotate sampledb %s %s-", o.Timeout, name, name,
		naming.AnnotationSwitchover)
}
