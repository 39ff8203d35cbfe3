//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// A SampleDB is changed while it runs. Parameters are reloaded where PostgreSQL can, restarted where it must, and a
// value that PostgreSQL refuses touches nothing. Volumes grow.
func TestChanges(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 2, `postgresql: {parameters: {work_mem: 5MB}}`,
		`resources: {requests: {cpu: 20m, memory: 128Mi}, limits: {cpu: "1"}}`))
	db := s.ready("shop")
	primary, standby := db.Status.Primary, other(db)
	first := s.startTime(primary)

	s.edit("shop", "s/work_mem: 5MB/work_mem: 6MB/")
	s.ready("shop")
	s.shown("shop", "work_mem", "6MB")
	if now := s.startTime(primary); now != first {
		t.Errorf("the primary restarted (%s, before %s) for a parameter that can be reloaded", now, first)
	}
	s.rejectsParameters("shop")

	check := s.writing("shop")
	// A standby needs at least as many connections as its primary: it goes first.
	s.patch("shop", `{"postgresql":{"parameters":{"max_connections":"150"}}}`)
	s.ready("shop")
	s.shown("shop", "max_connections", "150")
	if p, b := s.startTime(primary), s.startTime(standby); p <= b || p <= first {
		t.Errorf("the primary started at %s, the standby at %s: the standby should be first", p, b)
	}

	// On the way down the primary has to go first, or the standby would not start.
	s.patch("shop", `{"postgresql":{"parameters":{"max_connections":"80"}}}`)
	s.ready("shop")
	s.shown("shop", "max_connections", "80")
	s.until(func(context.Context) error { return s.equals(standby, "SHOW max_connections", "80") })
	s.everyInstanceStreams("shop", 1)
	check(outside.Restarts)
	s.grows("shop", "768Mi")
	s.getsProcessors("shop")
}

// getsProcessors gives a SampleDB more of the processors: its containers have that, and nothing restarts.
func (s *story) getsProcessors(name string) {
	s.Helper()
	db := s.ready(name)
	started := map[string]string{}
	for i := range db.Spec.Instances {
		started[naming.Instance(name, int(i))] = s.startTime(naming.Instance(name, int(i)))
	}
	s.patch(name, `{"resources":{"requests":{"cpu":"30m"},"limits":{"cpu":"1500m"}}}`)
	s.until(func(ctx context.Context) error {
		for pod := range started {
			limit, err := s.Kubectl(ctx, "get", "pod", pod, "-o", // what the kubelet says that it has
				`jsonpath={.status.containerStatuses[?(@.name=="postgresql")].resources.limits.cpu}`)
			if err == nil && limit != "1500m" {
				err = fmt.Errorf("%s may use %s", pod, limit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if now := s.ready(name).Status; now.Primary != db.Status.Primary || now.Term != db.Status.Term {
		s.Errorf("%s leads in term %d, before %s did in term %d",
			now.Primary, now.Term, db.Status.Primary, db.Status.Term)
	}
	for pod, before := range started {
		if now := s.startTime(pod); now != before {
			s.Errorf("%s restarted (%s, before %s) for more of the processors", pod, now, before)
		}
	}
}

// rejectsParameters gives a SampleDB some that PostgreSQL refuses: the condition has its own words, and the servers run
// on.
func (s *story) rejectsParameters(name string) {
	s.Helper()
	db := s.ready(name)
	before := s.startTime(db.Status.Primary)
	for parameter, words := range map[string]string{
		`"shared_buffers":"banana"`:   "shared_buffers",
		`"work_mem":"-1GB"`:           "work_mem",
		`"no_such_parameter":"1"`:     "no_such_parameter",
		`"max_connections":"1000000"`: "max_connections",
	} {
		s.patch(name, `{"postgresql":{"parameters":null}}`)
		s.patch(name, `{"postgresql":{"parameters":{`+parameter+`}}}`)
		message := s.condition(name, v1.ConditionConfigurationApplied, "False", v1.ReasonParameterRejected)
		if !strings.Contains(message, words) {
			s.Errorf("%s: the message %q does not name it", parameter, message)
		}
		if got := s.ask(name, "SELECT 1"); got != "1" {
			s.Errorf("%s: the server does not answer", parameter)
		}
	}
	s.patch(name, `{"postgresql":{"parameters":null}}`)
	s.patch(name, `{"postgresql":{"parameters":{"work_mem":"7MB"}}}`)
	s.condition(name, v1.ConditionConfigurationApplied, "True", v1.ReasonApplied)
	s.shown(name, "work_mem", "7MB")
	if now := s.startTime(db.Status.Primary); now != before {
		s.Errorf("the server restarted (%s, before %s)", now, before)
	}
}

// edit is kubectl edit, by a person who is a stream editor.
func (s *story) edit(name, expression string) {
	s.Helper()
	command := exec.CommandContext(s.ctx, "kubectl", "--namespace", string(s.Namespace), "edit", "SampleDB/"+name)
	command.Env = append(command.Environ(), "KUBE_EDITOR=sed -i '"+expression+"'")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "edited") {
		s.Fatalf("kubectl edit: %v: %s", err, out)
	}
}

// shown waits until a session through the Service has the value.
func (s *story) shown(name, parameter, want string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		var a outside.Access
		a, err := s.Access(ctx, name, name)
		if err != nil {
			return err
		}
		got, err := a.Ask(ctx, "SHOW "+parameter)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %s, want %s", parameter, got, want)
		}
		return err
	})
}

// startTime of a Pod's postmaster, which can be compared as text.
func (s *story) startTime(pod string) string {
	s.Helper()
	var at string
	s.until(func(context.Context) (err error) {
		at, err = s.inside(pod,
			"SELECT to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')")
		return err
	})
	return at
}

func (s *story) equals(pod, query, want string) error {
	got, err := s.inside(pod, query)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %s is %s, want %s", pod, query, got, want)
	}
	return err
}

// other is the instance of two that is not the primary.
func other(db v1.SampleDB) string {
	for _, i := range db.Status.InstanceStatuses {
		if i.Name != db.Status.Primary {
			return i.Name
		}
	}
	return ""
}
