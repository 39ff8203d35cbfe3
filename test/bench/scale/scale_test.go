package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRequestsAreCountedInTheirWindow(t *testing.T) {
	line := func(at, verb, object string, code int) string {
		const format = `{"verb":%q,"stageTimestamp":"2026-11-26T%sZ","objectRef":{%s},"responseStatus":{"code":%d}}`
		return fmt.Sprintf(format+"\n", verb, at, object, code)
	}
	leases := `"resource":"leases"`
	log := line("10:00:00", "update", leases, 200) + line("10:00:10", "create", `"resource":"secrets"`, 409) +
		line("10:00:20", "patch", `"resource":"sampledbs","subresource":"status"`, 200) +
		line("10:00:59.9", "get", leases, 200) + line("10:01:00", "get", leases, 200)
	from := time.Date(2026, 11, 26, 10, 0, 5, 0, time.UTC)
	got, err := count(strings.NewReader(log), from, from.Add(55*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if got.Writes != 2 || got.Reads != 1 || got.Refused != 1 || got.Which["patch sampledbs/status"] != 1 {
		t.Errorf("the requests are %+v", got)
	}
	if _, err := count(strings.NewReader("{"), from, from); err == nil {
		t.Error("half a line is understood")
	}
}

func TestTheOperatorsOwnMetricsAreRead(t *testing.T) {
	got, err := readMetrics(strings.NewReader(`# TYPE workqueue_depth gauge
workqueue_depth{controller="sampledb",name="sampledb",priority="0"} 2
workqueue_depth{controller="sampledb",name="sampledb",priority="1"} 1
workqueue_depth{controller="myapp",name="myapp",priority="0"} 7
controller_runtime_active_workers{controller="sampledb"} 40
controller_runtime_reconcile_total{controller="sampledb",result="error"} 1
controller_runtime_reconcile_total{controller="sampledb",result="requeue_after"} 1.2e+03
go_goroutines 7
`))
	if want := (load{looked: 1201, waiting: 3, working: 40}); err != nil || got != want {
		t.Errorf("it is %+v, %v, want %+v", got, err, want)
	}
}

func TestTheTimeOfAProcessIsRead(t *testing.T) {
	got, err := cpuOf("17 (a name) with brackets) S 1 17 17 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1 1")
	if err != nil || got != 3*time.Second {
		t.Errorf("it is %v, %v", got, err)
	}
	if _, err := cpuOf("17 (x) S"); err == nil {
		t.Error("a line without times is understood")
	}
	if got := kilobytes("VmHWM:\t  2 kB\nVmRSS:\t   12 kB\n", "VmRSS"); got != 12<<10 {
		t.Errorf("the memory is %d", got)
	}
}

func TestEveryThirdDatabaseHasThreeInstances(t *testing.T) {
	dbs := databases(10, 2, 50)
	count, names := 0, map[string]bool{}
	for _, db := range dbs {
		count += db.size()
		names[db.String()] = true
	}
	archived := slices.DeleteFunc(slices.Clone(dbs), func(d database) bool { return !d.archived })
	if len(archived) != 5 || archived[1].number-archived[0].number != 2 {
		t.Errorf("of ten, half have an archive: %v", archived)
	}
	if count != 18 || len(names) != 10 || dbs[3].Namespace == dbs[2].Namespace {
		t.Errorf("there are %d instances, and the names %v", count, names)
	}
}

func TestTheLedgerTellsWhoWaits(t *testing.T) {
	var l ledger
	l.note("nobody waits for this")
	seen := l.expect("this")
	l.note("this")
	l.note("this")
	if at, err := await(t.Context(), "this", seen); err != nil || time.Since(at) > time.Minute {
		t.Errorf("it was seen at %v, %v", at, err)
	}
}

func TestATableHasAllSizes(t *testing.T) {
	r := report{Sizes: []measured{
		{SampleDBs: 10, Instances: 18, ColdStart: 0.84, Rest: resting{Seconds: 300, Cores: 0.009}},
		{SampleDBs: 1000, Instances: 1668, ColdStart: 19.96},
	}}
	text := table(r)
	for _, want := range []string{
		"| SampleDBs (instances) | 10 (18) | 1000 (1668) | aim at 1,000 |\n| --- | --- | --- | --- |\n",
		"| cold start | 0.8 s | 20.0 s | 60 s |\n",
		"| processor at rest | 0.009 core | – | 0.05 core |\n", // too short to say so
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	page := between("a\n<!-- scale: begin -->\nformer\n<!-- scale: end -->\nb\n", text)
	if !strings.HasPrefix(page, "a\n<!-- scale: begin -->\n\n| SampleDBs") || strings.Contains(page, "former") ||
		!strings.HasSuffix(page, "\n<!-- scale: end -->\nb\n") {
		t.Errorf("the page is\n%s", page)
	}
	if svg := drawing(r); !strings.Contains(svg, ">cold start, s</text>") || strings.Contains(svg, "NaN") {
		t.Errorf("the drawing is\n%s", svg)
	}
}
