package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/plan"
)

type planOptions struct {
	cluster.Cluster
	files      []string
	serverSide bool
}

// Plan is `toban plan`: what applying a file would do to SampleDBs.
func Plan() *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what applying a file would do to SampleDBs: what restarts, is copied or removed",
		Long: "Asks `kubectl apply --dry-run=server` what the SampleDBs in the file would be, and shows what\n" +
			"follows. Nothing is changed. What would be refused is refused here, in the same words. To know which\n" +
			"parameters need a restart it asks the primary by psql in its Pod, which takes the right to create\n" +
			"pods/exec. docs/plan.md has the steps.\n\n" +
			"  kubectl toban plan -f shop.yaml",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	o.Flags(f)
	f.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder, as for kubectl apply; - is the standard input")
	f.BoolVar(&o.serverSide, "server-side", false, "ask as kubectl apply --server-side would")
	cobra.CheckErr(c.MarkFlagRequired("filename"))
	return c
}

// shownPlans is what applying a file does.
type shownPlans struct {
	SampleDBs []plan.Plan `json:"sampleDBs"`
	// Others are the other objects in the file, which were not looked at.
	Others []string `json:"others,omitempty"`
}

func (o *planOptions) run(c *cobra.Command) error {
	if err := o.Output.Check(); err != nil {
		return err
	}
	answer, err := o.dryRun(c)
	if err != nil {
		return err
	}
	wanted, others, err := sampleDBsOf(answer)
	if err != nil {
		return err
	}
	api, err := o.Connect()
	if err != nil {
		return err
	}
	shown := shownPlans{SampleDBs: []plan.Plan{}, Others: others}
	for i := range wanted {
		one, err := o.plan(c.Context(), api, &wanted[i])
		if err != nil {
			return err
		}
		shown.SampleDBs = append(shown.SampleDBs, one)
	}
	return o.Output.Show(c.OutOrStdout(), shown, shown.write)
}

// dryRun asks kubectl what the objects would be, as JSON. What it warns of or complains about goes to the person. It is
// told of a namespace only where the person names one: else those in the files hold.
func (o *planOptions) dryRun(c *cobra.Command) ([]byte, error) {
	var out bytes.Buffer
	kubectl := exec.CommandContext(c.Context(), "kubectl", o.applyArgs()...)
	kubectl.Stdin, kubectl.Stdout, kubectl.Stderr = c.InOrStdin(), &out, c.ErrOrStderr()
	err := kubectl.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return nil, errors.New("kubectl apply would fail, as it says above: there is no plan")
	case err != nil:
		return nil, fmt.Errorf("ask kubectl apply --dry-run=server: %w", err)
	}
	return out.Bytes(), nil
}

func (o *planOptions) applyArgs() []string {
	args := []string{"apply", "--dry-run=server", "--output=json"}
	if o.serverSide {
		args = append(args, "--server-side")
	}
	for _, flag := range []struct{ name, value string }{
		{"namespace", o.Namespace}, {"kubeconfig", o.Kubeconfig}, {"context", o.Context},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	for _, file := range o.files {
		args = append(args, "--filename="+file)
	}
	return args
}

// sampleDBsOf are the SampleDBs in an answer of kubectl, which is an object or a List; and what else there is.
func sampleDBsOf(answer []byte) (found []v1.SampleDB, others []string, err error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, nil, fmt.Errorf("understand kubectl's answer %.200q: %w", answer, err)
	}
	if list.Kind != "List" {
		list.Items = []json.RawMessage{answer}
	}
	for _, item := range list.Items {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(item, &object); err != nil {
			return nil, nil, fmt.Errorf("understand kubectl's answer %.200q: %w", item, err)
		}
		if object.GroupVersionKind() != v1.GroupVersion.WithKind("SampleDB") {
			others = append(others, object.Kind+" "+object.Name)
			continue
		}
		var db v1.SampleDB
		if err := json.Unmarshal(item, &db); err != nil {
			return nil, nil, fmt.Errorf("understand kubectl's answer about the SampleDB %s: %w", object.Name, err)
		}
		found = append(found, db)
	}
	return found, others, nil
}

// plan compares a SampleDB with the one that there is.
func (o *planOptions) plan(ctx context.Context, api client.Client, wanted *v1.SampleDB) (plan.Plan, error) {
	var now v1.SampleDB
	err := api.Get(ctx, types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.Name}, &now)
	if apierrors.IsNotFound(err) {
		return plan.Of(nil, wanted, plan.Seen{Now: time.Now()})
	}
	if err != nil {
		return plan.Plan{}, fmt.Errorf("read the SampleDB %s in namespace %s: %w", wanted.Name, wanted.Namespace, err)
	}
	seen, err := o.see(ctx, api, &now)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Of(&now, wanted, seen)
}

// see reads what a plan is made of besides the SampleDB. That the primary can't be asked, or that drills and claims
// can't be read, makes a plan that knows less.
func (o *planOptions) see(ctx context.Context, api client.Client, db *v1.SampleDB) (seen plan.Seen, err error) {
	for _, selector := range []map[string]string{naming.InstanceSelector(db.Name), naming.ReaderSelector(db.Name)} {
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace(db.Namespace), client.MatchingLabels(selector)); err != nil {
			return seen, fmt.Errorf("list the Pods of the SampleDB %s: %w", db.Name, err)
		}
		seen.Pods = append(seen.Pods, pods.Items...)
	}
	var drills v1.FaultDrillList
	if err := api.List(ctx, &drills, client.InNamespace(db.Namespace)); err == nil {
		seen.Drills = drills.Items
	}
	var claims corev1.PersistentVolumeClaimList
	if err := api.List(ctx, &claims, client.InNamespace(db.Namespace),
		client.MatchingLabels{naming.LabelSampleDB: db.Name}); err == nil {
		seen.Claims = claims.Items
	}
	seen.Now, seen.Contexts = time.Now(), o.contexts(ctx, db, seen.Pods)
	return seen, nil
}

// contextsScript asks when the server takes a new value of each parameter.
const contextsScript = "SET ROLE pg_monitor; SELECT json_object_agg(name, context) FROM pg_catalog.pg_settings;"

// contexts asks the primary for that, nil where it can't be asked.
func (o *planOptions) contexts(ctx context.Context, db *v1.SampleDB, pods []corev1.Pod) map[string]string {
	pod, err := cluster.InstanceChoice{}.Pick(db.Name, pods)
	if err != nil {
		return nil
	}
	at := o.Cluster
	at.Namespace = db.Namespace
	answer, err := at.Ask(ctx, pod, cluster.Question{
		Application: "kubectl toban plan", Database: cluster.DatabasePostgres, Script: contextsScript,
	})
	var out map[string]string
	if err != nil || json.Unmarshal(answer, &out) != nil {
		return nil
	}
	return out
}

// write shows the plans to a person.
func (s shownPlans) write(out io.Writer) error {
	for i, one := range s.SampleDBs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := writePlan(out, one); err != nil {
			return err
		}
	}
	if len(s.Others) > 0 {
		fmt.Fprintf(out, "\nnot looked at: %s\n", strings.Join(s.Others, ", "))
	}
	return nil
}
