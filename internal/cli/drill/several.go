package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// drillArgs says what is wrong with the arguments of a drill.
func (o *drillOptions) drillArgs(args []string) error {
	switch {
	case len(args) > 1 || (len(args) == 1) == (o.selector != ""):
		return errors.New("give the NAME of one SampleDB, or --selector for those with some labels")
	case len(o.meanwhile) > 0 && o.fault == "":
		return errors.New("--meanwhile goes with --fault: give the first fault by --fault")
	case o.selector != "" && o.fault == "":
		return errors.New("--selector goes with --fault: without it NAME says whose drills are shown")
	case o.selector != "" && !o.wait:
		return errors.New("--selector waits for each drill before the next one begins: leave out --wait=false")
	}
	if o.fault == "" {
		return nil
	}
	_, err := partsOf(o.meanwhile)
	return cmp.Or(knownFault(o.fault), err)
}

// several breaks all SampleDBs with some labels, one after the other. Its answer are the drills.
func (o *drillOptions) several(c *cobra.Command) error {
	if err := o.Output.Check(); err != nil {
		return err
	}
	api, err := o.Connect()
	if err != nil {
		return err
	}
	dbs, err := o.selected(c.Context(), api)
	if err != nil {
		return err
	}
	progress := c.OutOrStdout()
	if o.Output.Programs() {
		progress = c.ErrOrStderr()
	}
	drills, stopped := oneByOne(dbs, func(name string) (*v1.FaultDrill, error) {
		fmt.Fprintf(progress, "%s:\n", name)
		return o.drillOne(c.Context(), progress, api, name)
	})
	if len(drills) == 0 {
		return stopped
	}
	err = o.Output.Show(c.OutOrStdout(), drills, func(out io.Writer) error { return tellSummary(out, drills) })
	return errors.Join(err, stopped, notPassed(drills))
}

// selected are the names of the SampleDBs with the labels. All of them must allow drills, before the first begins.
func (o *drillOptions) selected(ctx context.Context, api client.Reader) ([]string, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("understand --selector, such as app=shop: %w", err)
	}
	var all v1.SampleDBList
	err = api.List(ctx, &all, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the SampleDBs: %w", err)
	}
	if len(all.Items) == 0 {
		return nil, fmt.Errorf("no SampleDB in namespace %s has the labels %s", o.Namespace, o.selector)
	}
	return allowed(all.Items)
}

// allowed are the names of SampleDBs, or why they can't be broken.
func allowed(dbs []v1.SampleDB) (names []string, err error) {
	var not []string
	for i := range dbs {
		if names = append(names, dbs[i].Name); !desired.AllowsDrills(&dbs[i]) {
			not = append(not, dbs[i].Name)
		}
	}
	slices.Sort(names)
	slices.Sort(not)
	if len(not) > 0 {
		return nil, fmt.Errorf("nothing is broken, for these do not allow drills: %s. Leave them out by --selector, "+
			"or where they may be broken: kubectl annotate sampledb %s %s=%s", strings.Join(not, ", "),
			strings.Join(not, " "), naming.AnnotationFaultDrills, naming.FaultDrillsAllowed)
	}
	return names, nil
}

// oneByOne breaks one SampleDB after the other, and stops where a drill could not begin, or is not watched to its
// end. Others go on, whatever came of one.
func oneByOne(names []string, one func(name string) (*v1.FaultDrill, error)) (drills []v1.FaultDrill, stopped error) {
	for _, name := range names {
		drill, err := one(name)
		if drill != nil {
			drills = append(drills, *drill)
		}
		if drill == nil || drill.Status.CompletedAt == nil {
			return drills, err
		}
	}
	return drills, nil
}

// drillOne breaks one of several SampleDBs, and returns the drill as it is then.
func (o *drillOptions) drillOne(
	ctx context.Context, out io.Writer, api client.Client, name string,
) (*v1.FaultDrill, error) {
	drill, err := o.create(ctx, api, name)
	if err != nil {
		return nil, err
	}
	err = awaitDrill(ctx, out, api, drill)
	if err != nil {
		fmt.Fprintln(out, err)
	}
	if failed := api.Get(ctx, client.ObjectKeyFromObject(drill), drill); failed != nil {
		return drill, errors.Join(err, fmt.Errorf("read the FaultDrill %s: %w", drill.Name, failed))
	}
	return drill, err
}

// tellSummary is what came of several drills, as a table.
func tellSummary(out io.Writer, drills []v1.FaultDrill) error {
	fmt.Fprintln(out)
	return show.Table(out, "write the table", func(table io.Writer) {
		fmt.Fprintln(table, "SAMPLEDB\tDRILL\tFAULT\tINSTANCE\tOUTAGE\tLOST\tRESULT")
		for i := range drills {
			d := &drills[i]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Spec.SampleDB, d.Name, d.Faults(), d.Instances(),
				d.Status.Outage, lostOf(d), resultOf(d))
		}
	})
}

// notPassed says which drills have not passed, nil where all have.
func notPassed(drills []v1.FaultDrill) error {
	var names []string
	for i := range drills {
		if resultOf(&drills[i]) != drillPassed {
			names = append(names, drills[i].Spec.SampleDB)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d have not passed: %s", len(names), len(drills), strings.Join(names, ", "))
}
