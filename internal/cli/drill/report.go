package drill

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	_ "embed"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
)

// formatHTML is the value of --output for a page.
const formatHTML = "html"

// drillReport is `toban drill report`: all about one drill.
func drillReport() *cobra.Command {
	var at cluster.Cluster
	c := &cobra.Command{
		Use:   "report FAULTDRILL",
		Short: "Show what came of one drill, as text, as JSON or as a page with a picture",
		Long: "Shows what was broken, when, and what the clients have seen of it, against the objectives. With\n" +
			"-o html it writes a page with a picture, which needs no other file: kubectl toban drill report D -o\n" +
			"html > drill.html. It does not fail for a drill that has not passed.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if at.Output.Format != formatHTML {
				if err := at.Output.Check(); err != nil {
					return fmt.Errorf("%w; or html", err)
				}
			}
			drill, err := readDrill(c.Context(), &at, args[0])
			if err != nil {
				return err
			}
			return writeReport(c.OutOrStdout(), &at.Output, reportOf(drill))
		},
	}
	f := c.Flags()
	at.Reach(f)
	f.StringVarP(&at.Output.Format, "output", "o", "", "json or yaml, for programs, or html, a page (default: text)")
	return c
}

// readDrill reads a FaultDrill.
func readDrill(ctx context.Context, c *cluster.Cluster, name string) (*v1.FaultDrill, error) {
	api, err := c.Connect()
	if err != nil {
		return nil, err
	}
	out := &v1.FaultDrill{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, out); err != nil {
		return nil, fmt.Errorf("read the FaultDrill %s in namespace %s: %w", name, c.Namespace, err)
	}
	return out, nil
}

// writeReport writes a report as it is asked for.
func writeReport(out io.Writer, o *show.Output, r shownDrill) error {
	if o.Format == formatHTML {
		return r.page(out)
	}
	return o.Show(out, r, r.write)
}

// shownDrill is all about one drill. The names of its fields are API.
type shownDrill struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	SampleDB  string `json:"sampleDB"`
	// Faults are what was done to what.
	Faults []shownFault `json:"faults"`
	// Passed is not there where there is no result. Reason and Message are those of the condition that says so.
	Passed  *bool  `json:"passed,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// The moments, as far as they have come.
	CreatedAt   metav1.Time  `json:"createdAt"`
	StartedAt   *metav1.Time `json:"startedAt,omitempty"`
	StruckAt    *metav1.Time `json:"struckAt,omitempty"`
	WholeAt     *metav1.Time `json:"wholeAt,omitempty"`
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// OutageSeconds is the longest time without an acknowledged write of all clients, MaxOutageSeconds what is allowed.
	OutageSeconds      float64 `json:"outageSeconds"`
	MaxOutageSeconds   float64 `json:"maxOutageSeconds"`
	WholeWithinSeconds float64 `json:"wholeWithinSeconds"`
	// Lost are acknowledged writes that are not there; it is not there where nobody has looked.
	Lost *int64 `json:"lost,omitempty"`
	// Clients are what each has seen, as in the status.
	Clients []v1.FaultDrillClient `json:"clients"`
}

// shownFault is one fault.
type shownFault struct {
	Fault v1.FaultDrillFault `json:"fault"`
	// Instance is which one was asked for, Broken what was broken, "" where nothing was.
	Instance v1.FaultDrillInstance `json:"instance"`
	Broken   string                `json:"broken,omitempty"`
}

// reportOf is all about a drill. It is pure.
func reportOf(d *v1.FaultDrill) shownDrill {
	status := d.Status
	out := shownDrill{
		Namespace: d.Namespace, Name: d.Name, SampleDB: d.Spec.SampleDB, CreatedAt: d.CreationTimestamp,
		StartedAt: status.StartedAt, StruckAt: status.StruckAt, WholeAt: status.WholeAt,
		CompletedAt: status.CompletedAt, Lost: status.Lost, Clients: status.Clients,
		MaxOutageSeconds:   d.Spec.Objectives.MaxOutage.Seconds(),
		WholeWithinSeconds: d.Spec.Objectives.WholeWithin.Seconds(),
	}
	chosen := status.Chosen()
	for i, part := range d.Spec.Parts() {
		fault := shownFault{Fault: part.Fault, Instance: part.Instance}
		if i < len(chosen) {
			fault.Broken = chosen[i]
		}
		out.Faults = append(out.Faults, fault)
	}
	for _, c := range status.Clients {
		out.OutageSeconds = max(out.OutageSeconds, c.Outage.Seconds())
	}
	complete := meta.FindStatusCondition(status.Conditions, v1.ConditionComplete)
	passed := meta.FindStatusCondition(status.Conditions, v1.ConditionPassed)
	if complete != nil {
		out.Reason, out.Message = complete.Reason, complete.Message
	}
	if passed != nil {
		is := passed.Status == metav1.ConditionTrue
		out.Passed, out.Reason, out.Message = &is, passed.Reason, cmp.Or(passed.Message, out.Message)
	}
	return out
}

// Result is one or two words.
func (r shownDrill) Result() string {
	switch {
	case r.Passed == nil:
		return "no result"
	case *r.Passed:
		return drillPassed
	}
	return "not passed"
}

// What is what was broken, in a line.
func (r shownDrill) What() string {
	var all []string
	for _, f := range r.Faults {
		all = append(all, fmt.Sprintf("%s of %s", f.Fault, cmp.Or(f.Broken, string(f.Instance)+" (not done)")))
	}
	return strings.Join(all, ", ")
}

// write shows a report to a person.
func (r shownDrill) write(out io.Writer) error {
	fmt.Fprintf(out, "%s/%s: %s: %s\n%s: %s\n\n", r.Namespace, r.Name, r.SampleDB, r.What(), r.Result(), r.Message)
	for _, m := range r.Moments() {
		fmt.Fprintf(out, "%s  %s\n", m.At.UTC().Format(time.RFC3339), m.What)
	}
	fmt.Fprintf(out, "\nobjectives: no outage longer than %gs, none lost, whole again within %gs\n\n",
		r.MaxOutageSeconds, r.WholeWithinSeconds)
	return tellClients(out, r.Clients)
}

// moment is one of a drill's, and where it is in the picture.
type moment struct {
	At   metav1.Time
	What string
	X    float64
}

// Moments are those that have come, in their order. The picture begins with the first and ends with the last.
func (r shownDrill) Moments() (all []moment) {
	for _, m := range []struct {
		at   *metav1.Time
		what string
	}{
		{r.StartedAt, "begun"}, {r.StruckAt, "broken"}, {r.WholeAt, "whole again"}, {r.CompletedAt, "over"},
	} {
		if m.at != nil {
			all = append(all, moment{At: *m.at, What: m.what})
		}
	}
	if len(all) == 0 {
		return nil
	}
	began := all[0].At
	span := max(all[len(all)-1].At.Sub(began.Time).Seconds(), 1)
	for i := range all {
		all[i].X = pictureLeft + pictureWidth*all[i].At.Sub(began.Time).Seconds()/span
	}
	return all
}

// bar is what one client has seen, in the picture.
type bar struct {
	Way, Seconds string
	Y, Width     float64
	TooLong      bool
}

// Sizes of the picture, in its own units.
const (
	pictureLeft, pictureWidth = 90.0, 450.0
	barHeight                 = 26.0
)

// scale is how many seconds the width of the picture has.
func (r shownDrill) scale() float64 { return 1.1 * max(r.OutageSeconds, r.MaxOutageSeconds, 0.1) }

// Bars are the outages of the clients that write.
func (r shownDrill) Bars() (all []bar) {
	for _, c := range r.Clients {
		if c.Acknowledged == 0 && c.Staleness != nil { // it only reads
			continue
		}
		all = append(all, bar{
			Way: c.Way, Seconds: fmt.Sprintf("%.2fs", c.Outage.Seconds()), Y: barHeight * float64(len(all)),
			Width:   max(1, pictureWidth*c.Outage.Seconds()/r.scale()),
			TooLong: c.Outage.Seconds() > r.MaxOutageSeconds,
		})
	}
	return all
}

// Height is how high the bars are together, Allowed where the objective is.
func (r shownDrill) Height() float64  { return barHeight * float64(len(r.Bars())) }
func (r shownDrill) Allowed() float64 { return pictureLeft + pictureWidth*r.MaxOutageSeconds/r.scale() }

// drillPage is the page of a report.
//
//go:embed report.html
var drillPage string

// page writes a report as a page that needs no other file.
func (r shownDrill) page(out io.Writer) error {
	page, err := template.New("drill").Funcs(template.FuncMap{
		"at":  func(t metav1.Time) string { return t.UTC().Format(time.RFC3339) },
		"old": stalenessOf,
		"add": func(a, b float64) float64 { return a + b },
	}).Parse(drillPage)
	if err == nil {
		err = page.Execute(out, r)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
