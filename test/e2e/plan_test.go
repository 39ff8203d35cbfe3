//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/plan"
)

// What `kubectl toban plan` says of a change is what happens when that is applied, and nothing else happens: no other
// Pod is made anew, no other server restarts. The plan itself changes nothing. (The tests of internal/operator/plan
// compare the plan with the functions that decide.)
func TestLongAPlanIsWhatHappens(t *testing.T) {
	s := begin(t)
	spec := map[string]string{
		"instances": "2", "limits": `{cpu: "1"}`, "parameters": "{}", "labels": "{}", "durability": "quorum",
	}
	s.apply(shopOf(spec))
	s.ready("shop")
	if p := s.plan(spec); len(p.Steps) != 0 {
		t.Errorf("the same manifest again: %+v", p.Steps)
	}
	for _, change := range []struct {
		field, value string
		want         []plan.Effect
	}{
		{"parameters", "{work_mem: 6MB}", []plan.Effect{plan.Reload}},
		{"durability", "async", []plan.Effect{plan.AtOnce}},
		{"limits", `{cpu: 1500m}`, []plan.Effect{plan.ResizePods}},
		{"parameters", `{work_mem: 6MB, max_connections: "150"}`, []plan.Effect{plan.RestartServers}},
		{"labels", "{team: a}", []plan.Effect{plan.ReplacePods}},
		{"instances", "1", []plan.Effect{plan.RemoveInstances}},
	} {
		spec[change.field] = change.value
		before, err := s.servers("shop")
		must(t, err)
		p := s.plan(spec)
		var effects []plan.Effect
		for _, step := range p.Steps {
			effects = append(effects, step.Effect)
		}
		if !slices.Equal(effects, change.want) {
			t.Errorf("%s: %s: the plan is %v, want %v", change.field, change.value, effects, change.want)
		}
		if now, err := s.servers("shop"); err != nil || !maps.Equal(now, before) {
			t.Fatalf("the plan has changed %v to %v: %v", before, now, err)
		}
		s.apply(shopOf(spec))
		s.until(func(context.Context) error { return s.happened(p, before) })
		s.ready("shop")
		must(t, s.happened(p, before))
	}
	s.refusesAPlan(spec)
}

// shopOf is the manifest of a SampleDB.
func shopOf(spec map[string]string) string {
	instances, _ := strconv.Atoi(spec["instances"])
	return bare("shop", instances, "durability: "+spec["durability"],
		"resources: {requests: {cpu: 20m, memory: 128Mi}, limits: "+spec["limits"]+"}",
		"postgresql: {parameters: "+spec["parameters"]+"}", "pod: {labels: "+spec["labels"]+"}")
}

// plan is what the command says of a manifest, for programs. It has to have something to say for people too.
func (s *story) plan(spec map[string]string) plan.Plan {
	s.Helper()
	file := filepath.Join(s.TempDir(), "shop.yaml")
	must(s.T, os.WriteFile(file, []byte(shopOf(spec)), 0o600))
	s.Log(s.toban("plan", "-f", file))
	var shown struct {
		SampleDBs []plan.Plan `json:"sampleDBs"`
	}
	out := s.toban("plan", "-f", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.SampleDBs) != 1 {
		s.Fatalf("%v: the plan is %s", err, out)
	}
	return shown.SampleDBs[0]
}

// server is a server of an instance: its Pod, how much of the processors that may have, and its start.
type server struct{ pod, cpu, started string }

// servers are those that run, by their names.
func (s *story) servers(db string) (map[string]server, error) {
	pods, err := s.Kubectl(s.ctx, "get", "pods", "-l", naming.LabelSampleDB+"="+db+","+naming.LabelComponent+"="+
		naming.ComponentInstance, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} `+
		`{.spec.containers[?(@.name=="postgresql")].resources.limits.cpu}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	out := map[string]server{}
	for line := range strings.Lines(pods) {
		var name string
		var one server
		if _, err := fmt.Sscan(line, &name, &one.pod, &one.cpu); err != nil {
			return nil, fmt.Errorf("understand %q: %w", line, err)
		}
		if one.started, err = s.inside(name, "SELECT pg_postmaster_start_time()"); err != nil {
			return nil, err
		}
		out[name] = one
	}
	return out, nil
}

// happened says in what the servers are not as a plan of what they were says; nil for nothing.
func (s *story) happened(p plan.Plan, before map[string]server) error {
	want := map[string]plan.Effect{}
	for _, step := range p.Steps {
		for _, name := range step.Instances {
			if step.Effect != plan.Reload {
				want[name] = step.Effect
			}
		}
	}
	now, err := s.servers("shop")
	if err != nil {
		return err
	}
	for name, was := range before {
		is, there := now[name]
		var got plan.Effect
		switch {
		case !there:
			got = plan.RemoveInstances
		case is.pod != was.pod:
			got = plan.ReplacePods
		case is.started != was.started:
			got = plan.RestartServers
		case is.cpu != was.cpu:
			got = plan.ResizePods
		}
		if got != want[name] {
			return fmt.Errorf("%s: what has happened is %q, and the plan says %q: %+v", name, got, want[name], p.Steps)
		}
	}
	return nil
}

// refusesAPlan asks for what the API server refuses.
func (s *story) refusesAPlan(spec map[string]string) {
	s.Helper()
	manifest := strings.Replace(shopOf(spec), "size: 512Mi", "size: 128Mi", 1)
	file := filepath.Join(s.TempDir(), "shop.yaml")
	must(s.T, os.WriteFile(file, []byte(manifest), 0o600))
	out, err := s.Toban(s.ctx, "plan", "-f", file)
	if err == nil || !strings.Contains(out, "storage.size must be at least 256Mi") {
		s.Errorf("volumes that are too small: %v\n%s", err, out)
	}
}
