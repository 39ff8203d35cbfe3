//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// withLeader needs no database: it is only asked who it is.
const withLeader = `
apiVersion: example.com/v1
kind: MyApp
metadata: {name: led}
spec:
  replicas: 3
  image: guestbook:1
  args: [serve]
  port: 8080
  leader: true
  readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
  securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
  podSecurityContext: {runAsNonRoot: true}
`

// Whoever the leader is, one Pod answers at NAME-leader. When it dies another one does, and the former one
// not any more; at no time does the Service lead to two. How long it took is told, and not judged.
func TestTheLeaderMovesWhenItDies(t *testing.T) { leadersDie(t, 2) }

// As often as it takes to tell how long it takes. TestTheLeaderMovesWhenItDies does it twice in each way.
func TestLongTheLeaderMovesWhenItDies(t *testing.T) { leadersDie(t, 10) }

// leadersDie has so many leaders die in each way.
func leadersDie(t *testing.T, rounds int) {
	t.Helper()
	s := begin(t)
	s.apply(withLeader)
	s.run("wait", "myapp/led", "--for=condition=Ready", "--timeout=4m")
	leader := guests(s.address("led-leader"))
	watched := s.watchLeader("led")
	for way, flags := range map[string][]string{
		"deleted":          nil,
		"deleted by force": {"--grace-period=0", "--force"},
	} {
		var took []time.Duration
		for range rounds {
			took = append(took, s.leaderDies(leader, flags))
		}
		slices.Sort(took)
		t.Logf("a leader that is %s: another one answers after %v, median %v", way, took, took[len(took)/2])
	}
	watched()
}

// leaderDies deletes the leader's Pod and says when another one answered as the leader.
func (s *story) leaderDies(leader guests, flags []string) time.Duration {
	s.Helper()
	var before answered
	s.until(func(ctx context.Context) error {
		var err error
		if before, err = leader.ask(ctx, "/leader"); err != nil {
			return err
		}
		status, err := s.Kubectl(ctx, "get", "myapp", "led", "-o", "jsonpath={.status.ready} {.status.leader}")
		if err == nil && status != "3/3 "+before.Pod {
			err = fmt.Errorf("%s answers, and the status is %s", before.Pod, status)
		}
		return err
	})
	begin := time.Now()
	s.run(append([]string{"delete", "pod", before.Pod, "--wait=false"}, flags...)...)
	took := time.Duration(0)
	s.until(func(ctx context.Context) error {
		now, err := leader.ask(ctx, "/leader")
		if err == nil && now.Pod == before.Pod {
			err = fmt.Errorf("it is still %s", now.Pod)
		}
		took = time.Since(begin)
		return err
	})
	for range 20 {
		if now, err := leader.ask(s.ctx, "/leader"); err == nil && now.Pod == before.Pod {
			s.Errorf("%s answers again though another one leads", now.Pod)
		}
	}
	return took.Round(10 * time.Millisecond)
}

// watchLeader watches where NAME-leader leads to. What it returns ends that and says what was wrong.
func (s *story) watchLeader(name string) func() {
	s.Helper()
	ctx, stop := context.WithCancel(s.ctx)
	watch := exec.CommandContext(ctx, "kubectl", "--namespace", string(s.Namespace), "get", "endpointslices",
		"--watch", "-o", "json", "-l", discoveryv1.LabelServiceName+"="+name+"-leader")
	out, err := watch.StdoutPipe()
	must(s.T, err)
	must(s.T, watch.Start())
	var running sync.WaitGroup
	seen := leaders{slices: map[string][]string{}}
	running.Go(func() { seen.read(out) })
	var once sync.Once
	end := func() {
		once.Do(func() {
			stop()
			running.Wait()
			_ = watch.Wait() // it was killed
		})
	}
	s.Cleanup(end)
	return func() {
		s.Helper()
		end()
		if seen.changes == 0 {
			s.Error("nothing was seen of the EndpointSlices")
		}
		for _, two := range seen.wrong {
			s.Errorf("%s-leader led to %v at once", name, two)
		}
	}
}

// leaders is where a Service led to.
type leaders struct {
	slices  map[string][]string // ready addresses, by the EndpointSlice's name
	changes int
	wrong   [][]string
}

func (l *leaders) read(in io.Reader) {
	for objects := json.NewDecoder(in); ; {
		var slice discoveryv1.EndpointSlice
		if objects.Decode(&slice) != nil {
			return // it was ended
		}
		l.changes++
		var ready []string
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			}
		}
		l.slices[slice.Name] = ready
		var all []string
		for _, addresses := range l.slices {
			all = append(all, addresses...)
		}
		if len(all) > 1 {
			l.wrong = append(l.wrong, all)
		}
	}
}

// A Service that leads to two at once is noticed.
func TestTwoLeadersAreNoticed(t *testing.T) {
	slice := func(name string, addresses ...string) string {
		s := discoveryv1.EndpointSlice{}
		s.Name = name
		for _, a := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
		}
		text, err := json.Marshal(s)
		must(t, err)
		return string(text)
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"one after the other": {slice("a", "1") + slice("a") + slice("a", "2"), 0},
		"two in one":          {slice("a", "1", "2"), 1},
		"two in two":          {slice("a", "1") + slice("b", "2"), 1},
	} {
		seen := leaders{slices: map[string][]string{}}
		seen.read(bytes.NewBufferString(c.text))
		if len(seen.wrong) != c.want {
			t.Errorf("%s: %v", name, seen.wrong)
		}
	}
}
