package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
)

type promoteOptions struct {
	cluster.Cluster
	acceptLoss, yes, wait bool
}

// Promote is `toban promote`: it promotes an instance where too few have data to elect one.
func Promote() *cobra.Command {
	var o promoteOptions
	c := &cobra.Command{
		Use:   "promote NAME --accept-loss",
		Short: "Promote the instance with the most data when too many volumes are lost to elect one",
		Long: "For a SampleDB that can't elect a primary because the volumes of too many instances are lost for\n" +
			"good. The instance with the most data goes on with what it has, and the others copy it. What was\n" +
			"acknowledged and only the others had is lost. The command shows what is known of that, and asks for\n" +
			"the name of the SampleDB. Nothing happens while an instance does not answer, or one can be elected.\n" +
			"`kubectl toban restore NAME --to latest` begins again with what the archive has instead.\n" +
			"To move the primary without a loss: kubectl toban switchover NAME.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.Act(c, func(out io.Writer) error { return o.run(c.Context(), c.InOrStdin(), out, args[0]) })
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.BoolVar(&o.acceptLoss, "accept-loss", false, "required: what only the other instances had is lost")
	f.BoolVar(&o.yes, "yes", false, "don't ask for the name of the SampleDB")
	f.BoolVar(&o.wait, "wait", true, "wait until it takes writes")
	return c
}

func (o *promoteOptions) run(ctx context.Context, in io.Reader, out io.Writer, name string) error {
	if !o.acceptLoss {
		return fmt.Errorf("say --accept-loss: what was acknowledged and only the other instances had is lost. To move "+
			"the primary without a loss: kubectl toban switchover %s", name)
	}
	api, db, err := o.Find(ctx, name)
	if err != nil {
		return err
	}
	if err := promoteRefused(db); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s.\n", name, available(db).Message)
	for _, i := range db.Status.InstanceStatuses {
		fmt.Fprintf(out, "  %s: %s: %s\n", i.Name, i.Reason, i.Message)
	}
	fmt.Fprintf(out, "%s: all instances stop, and the one with the most data goes on with that. What was acknowledged "+
		"and only\nthe others had is lost for good, also if one of their volumes comes back later.\n", name)
	if !o.yes {
		if err := show.ConfirmName(ctx, in, out, name); err != nil {
			return err
		}
	}
	return o.promote(ctx, out, api, db)
}

// promoteRefused says why no instance is to be promoted with a loss, as far as the status shows it. The operator knows
// more.
func promoteRefused(db *v1.SampleDB) error {
	c := available(db)
	switch id := underWay(db); {
	case id != "":
		return fmt.Errorf("the restore %s is under way: %s", id, restoreLine(db))
	case c == nil:
		return errors.New("whether an instance takes writes is not known yet: try again in a moment")
	case c.Status == metav1.ConditionTrue:
		return fmt.Errorf("%s takes writes, so nothing needs to be lost. To move the primary: kubectl toban "+
			"switchover %s", db.Status.Primary, db.Name)
	}
	return nil
}

// promote asks for it, and waits.
func (o *promoteOptions) promote(ctx context.Context, out io.Writer, api client.Client, db *v1.SampleDB) error {
	id := "promote-" + time.Now().UTC().Format("20060102-150405")
	asked, err := changeSpec(ctx, api, db, func(now *v1.SampleDB) error {
		if err := promoteRefused(now); err != nil {
			return err
		}
		now.Spec.Restore = &v1.InPlaceRestore{ID: id, Confirm: now.Name, Survivor: true, Before: v1.BeforeKeep}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask for the promotion: %w", err)
	}
	o.Subject = asked
	fmt.Fprintf(out, "%s: the promotion %s is asked for\n", db.Name, id)
	if !o.wait {
		return nil
	}
	return (&restoreWatch{api: api, asked: asked, id: id}).await(ctx, out)
}
