package plan

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/operator/plan"
)

func TestWhatKubectlAnswers(t *testing.T) {
	const db = `{"apiVersion":"toban.dev/v1","kind":"SampleDB","metadata":{"name":"shop"},"spec":{"version":17}}`
	const other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"sql"}}`
	const foreign = `{"apiVersion":"other.example/v1","kind":"SampleDB","metadata":{"name":"their"},"spec":{"a":0}}`
	for answer, want := range map[string]string{
		db: "shop; ",
		`{"kind":"List","items":[` + db + "," + other + "," + foreign + `]}`: "shop; ConfigMap sql,SampleDB their",
		other:                        "; ConfigMap sql",
		`{"kind":"List","items":[]}`: "; ",
	} {
		found, others, err := sampleDBsOf([]byte(answer))
		var names []string
		for _, db := range found {
			names = append(names, db.Name)
		}
		if got := strings.Join(names, ",") + "; " + strings.Join(others, ","); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", answer, got, err, want)
		}
	}
	for _, answer := range []string{"", "error", strings.Replace(db, "17", `"x"`, 1)} {
		if _, _, err := sampleDBsOf([]byte(answer)); err == nil {
			t.Errorf("%q is understood", answer)
		}
	}
}

// A namespace that nobody has named is not named to kubectl: it would refuse what a file has in another one.
func TestKubectlIsAskedAsThePersonWould(t *testing.T) {
	o := planOptions{files: []string{"a.yaml", "-"}}
	if got := o.applyArgs(); !slices.Equal(got, []string{
		"apply", "--dry-run=server", "--output=json", "--filename=a.yaml", "--filename=-",
	}) {
		t.Errorf("it is asked %q", got)
	}
	o.Namespace, o.Context, o.serverSide = "shop", "there", true
	got := strings.Join(o.applyArgs(), " ")
	if !strings.Contains(got, "--server-side --namespace=shop --context=there ") {
		t.Errorf("it is asked %q", got)
	}
}

func TestAPlanForPeople(t *testing.T) {
	p := plan.Plan{Namespace: "default", Name: "shop"}
	show := func() string {
		var out bytes.Buffer
		if err := writePlan(&out, p); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := show(); got != "SampleDB default/shop stays as it is\n" {
		t.Errorf("nothing changes: %s", got)
	}
	p.Minors = "PostgreSQL 17.12 takes the place of 17.11"
	if got := show(); !strings.HasSuffix(got, "stays as it is\n\nPostgreSQL 17.12 takes the place of 17.11\n") {
		t.Errorf("what is announced is not told: %s", got)
	}
	p.Steps = []plan.Step{{
		Effect: plan.ReplacePods, Instances: []string{"shop-1", "shop-0"}, Writes: plan.WritesHandOver,
		Fields: []string{"pod.labels"}, Message: "one at a time",
	}}
	if got := show(); !strings.HasPrefix(got, "SampleDB default/shop is made\n") {
		t.Errorf("no field is there before: %s", got)
	}
	p.Fields = []plan.Field{{Path: "pod.labels", After: `{"team":"a"}`}}
	p.Warnings = []string{"one instance"}
	for _, words := range []string{
		"SampleDB default/shop changes:\n  pod.labels  (not given) -> {\"team\":\"a\"}\n",
		"1     ReplacePods  shop-1, shop-0  HandOver  pod.labels\n", "1. ReplacePods: one at a time\n",
		"was not measured. To measure it: kubectl toban drill shop --fault PodDeleted\n", "Warning: one instance\n",
	} {
		if got := show(); !strings.Contains(got, words) {
			t.Errorf("%q is not in it:\n%s", words, got)
		}
	}
	p.HandOver = &plan.Measured{Seconds: 1.61, By: "shop-1", At: time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)}
	if got := show(); !strings.Contains(got, "took 1.61 s without writes") {
		t.Errorf("it was measured:\n%s", got)
	}
	p.Steps[0].Writes, p.HandOver = plan.WritesDown, nil
	if got := show(); strings.Contains(got, "hand-over") {
		t.Errorf("nobody hands over:\n%s", got)
	}
}
