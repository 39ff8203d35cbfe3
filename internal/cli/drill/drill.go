package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
)

type drillOptions struct {
	cluster.Cluster
	fault, instance, zone, selector          string
	abortWhen                                string
	meanwhile                                []string
	duration, observe, maxOutage, abortAfter time.Duration
	backupWithin                             time.Duration
	atOnce                                   int32
	wait                                     bool
}

// Drill is `toban drill`: it breaks an instance on purpose, or shows what came of that before.
func Drill() *cobra.Command {
	var o drillOptions
	c := &cobra.Command{
		Use:   "drill (NAME | --selector LABELS)",
		Short: "Break an instance on purpose while clients write, and show what became of the writes",
		Long: "With --fault it creates a FaultDrill of a SampleDB, which must allow that by its annotation\n" +
			naming.AnnotationFaultDrills + "=" + naming.FaultDrillsAllowed +
			", and watches it. It fails if the drill does not pass.\n" +
			"Without --fault it shows the drills that there were. \"drill report\" is all about one of them.\n" +
			"With --selector it breaks all SampleDBs with these labels, one after the other, and fails if one\n" +
			"does not pass.",
		Args: func(_ *cobra.Command, args []string) error { return o.drillArgs(args) },
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.selector != "":
				return o.several(c)
			case o.fault == "":
				return o.history(c.Context(), c.OutOrStdout(), args[0])
			}
			return o.Act(c, func(out io.Writer) error { return o.run(c.Context(), out, args[0]) })
		},
	}
	f := c.Flags()
	o.Flags(f)
	f.StringVar(&o.fault, "fault", "", "what happens: "+strings.Join(drillFaults[:5], ", ")+",\n"+
		strings.Join(drillFaults[5:], ", "))
	f.StringVar(&o.instance, "on", string(v1.DrillPrimary), "to which instance: "+strings.Join(drillInstances, ", "))
	f.StringVar(&o.zone, "zone", "", "the zone of whose instances, with --on "+string(v1.DrillZone))
	f.StringSliceVar(&o.meanwhile, "meanwhile", nil,
		"further faults at the same time, such as ServerKilled=Primary,ReplayPaused=Standby")
	f.StringVarP(&o.selector, "selector", "l", "", "break all SampleDBs with these labels, such as app=shop")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long a ServerHung, DiskFull, ReplayPaused,\n"+
		"APIAway or ArchiveAway lasts")
	f.DurationVar(&o.observe, "observe", 30*time.Second, "for how long the clients write")
	f.DurationVar(&o.maxOutage, "max-outage", 30*time.Second, "how long a client may be without an acknowledged write")
	f.DurationVar(&o.abortAfter, "abort-after", time.Minute, "when to give up: after so long without such a write")
	f.StringVar(&o.abortWhen, "abort-when", "", "also when this query of the application's role is true")
	f.DurationVar(&o.backupWithin, "backup-within", 0, "break nothing without a backup that is as new, such as 24h")
	f.Int32Var(&o.atOnce, "at-once", 0, "how many drills of the namespace may be under way with it (default: any)")
	f.BoolVar(&o.wait, "wait", true, "wait for the outcome")
	// They fail only for a flag that is not there.
	_ = c.RegisterFlagCompletionFunc("fault", cobra.FixedCompletions(drillFaults, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("on", cobra.FixedCompletions(drillInstances, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("meanwhile", completeMeanwhile)
	c.AddCommand(drillReport())
	return c
}

// run creates a FaultDrill, and watches it.
func (o *drillOptions) run(ctx context.Context, out io.Writer, name string) error {
	api, err := o.Connect()
	if err != nil {
		return err
	}
	if _, err := o.Read(ctx, api, name); err != nil {
		return err
	}
	wanted, err := o.create(ctx, api, name)
	if err != nil {
		return err
	}
	o.Subject = wanted
	if !o.wait {
		fmt.Fprintf(out, "%s: created\n", wanted.Name)
		return nil
	}
	return awaitDrill(ctx, out, api, wanted)
}

// create creates a FaultDrill of a SampleDB as the flags say.
func (o *drillOptions) create(ctx context.Context, api client.Client, name string) (*v1.FaultDrill, error) {
	meanwhile, err := partsOf(o.meanwhile)
	if err != nil {
		return nil, err
	}
	wanted := &v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: naming.FaultDrill(name, time.Now())},
		Spec: v1.FaultDrillSpec{
			SampleDB: name, Fault: v1.FaultDrillFault(o.fault), Instance: v1.FaultDrillInstance(o.instance),
			Zone: o.zone, Meanwhile: meanwhile, AtOnce: o.atOnce,
			AbortWhen: o.abortWhen,
			Duration:  metav1.Duration{Duration: o.duration}, Observe: metav1.Duration{Duration: o.observe},
			AbortAfter: metav1.Duration{Duration: o.abortAfter}, Deadline: metav1.Duration{Duration: 30 * time.Minute},
			Objectives: v1.FaultDrillObjectives{
				MaxOutage:   metav1.Duration{Duration: o.maxOutage},
				WholeWithin: metav1.Duration{Duration: 10 * time.Minute},
			},
		},
	}
	if o.backupWithin != 0 {
		wanted.Spec.BackupWithin = &metav1.Duration{Duration: o.backupWithin}
	}
	if err := api.Create(ctx, wanted, client.FieldOwner("toban-cli")); err != nil {
		return nil, fmt.Errorf("create the FaultDrill %s: %w", wanted.Name, err)
	}
	return wanted, nil
}

// awaitDrill tells how far it is until it is over. Its error is why it has not passed.
func awaitDrill(ctx context.Context, out io.Writer, api client.Client, asked *v1.FaultDrill) error {
	left := fmt.Sprintf("it goes on without being watched; to give it up: kubectl patch faultdrill %s "+
		`--type=merge -p '{"spec":{"cancel":true}}'`, asked.Name)
	return await.RequestOf(api, asked, left).Await(ctx, out, func(now *v1.FaultDrill) (string, bool, error) {
		c := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionComplete)
		switch {
		case c == nil:
			return "", false, nil
		case now.Status.CompletedAt != nil:
			return "", true, tellDrill(out, now, c)
		}
		return fmt.Sprintf("%s: %s", now.Name, c.Message), false, nil
	})
}

// tellDrill says what the clients have seen, and whether that passes.
func tellDrill(out io.Writer, now *v1.FaultDrill, complete *metav1.Condition) error {
	if complete.Status != metav1.ConditionTrue {
		return fmt.Errorf("the drill has no result: %s: %s", complete.Reason, complete.Message)
	}
	if err := tellClients(out, now.Status.Clients); err != nil {
		return err
	}
	passed := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionPassed)
	if passed == nil || passed.Status != metav1.ConditionTrue {
		return errors.New("not passed: " + complete.Message)
	}
	fmt.Fprintf(out, "passed: %s of %s: %s\n", now.Faults(), now.Instances(), complete.Message)
	return nil
}

// tellClients is what the clients have seen, as a table.
func tellClients(out io.Writer, clients []v1.FaultDrillClient) error {
	return show.Table(out, "write the table", func(table io.Writer) {
		fmt.Fprintln(table, "CLIENT\tLONGEST OUTAGE\tACKNOWLEDGED\tLOST\tREADS\tSTALE\tOLDEST\tERRORS\tFIRST ERROR")
		for _, c := range clients {
			fmt.Fprintf(table, "%s\t%.2fs\t%d\t%d\t%d\t%d\t%s\t%d\t%s\n", c.Way, c.Outage.Seconds(), c.Acknowledged,
				c.Lost, c.Reads, c.StaleReads, stalenessOf(c), c.Errors, firstLine(c.FirstError))
		}
	})
}

// stalenessOf is how old the oldest answer of a standby was, "" where nobody has looked.
func stalenessOf(c v1.FaultDrillClient) string {
	if c.Staleness == nil {
		return ""
	}
	return fmt.Sprintf("%.2fs", c.Staleness.Seconds())
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// history shows the drills of a SampleDB, the newest last.
func (o *drillOptions) history(ctx context.Context, out io.Writer, name string) error {
	api, err := o.Connect()
	if err != nil {
		return err
	}
	var all v1.FaultDrillList
	if err := api.List(ctx, &all, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list the FaultDrills: %w", err)
	}
	drills := slices.DeleteFunc(all.Items, func(d v1.FaultDrill) bool { return d.Spec.SampleDB != name })
	slices.SortFunc(drills, func(a, b v1.FaultDrill) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return o.Output.Show(out, drills, func(out io.Writer) error { return tellDrills(out, name, drills) })
}

// tellDrills is the history as a table.
func tellDrills(out io.Writer, name string, drills []v1.FaultDrill) error {
	if len(drills) == 0 {
		fmt.Fprintf(out, "%s had no drill. For one: kubectl toban drill %s --fault ServerKilled\n", name, name)
		return nil
	}
	return show.Table(out, "write the table", func(table io.Writer) {
		fmt.Fprintln(table, "CREATED\tDRILL\tFAULT\tINSTANCE\tOUTAGE\tLOST\tRESULT")
		for i := range drills {
			d := &drills[i]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.CreationTimestamp.UTC().Format(time.RFC3339), d.Name,
				d.Faults(), d.Instances(), d.Status.Outage, lostOf(d), resultOf(d))
		}
	})
}

func lostOf(d *v1.FaultDrill) string {
	if d.Status.Lost == nil {
		return ""
	}
	return fmt.Sprint(*d.Status.Lost)
}

// drillPassed is the result of a drill that has.
const drillPassed = "passed"

// resultOf is one word, or the reason why it has not passed.
func resultOf(d *v1.FaultDrill) string {
	if c := meta.FindStatusCondition(d.Status.Conditions, v1.ConditionPassed); c != nil {
		if c.Status == metav1.ConditionTrue {
			return drillPassed
		}
		return c.Reason
	}
	return d.Status.Phase
}
