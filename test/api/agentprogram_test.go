package api

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// programs gives agents a program, which go on as it unless they are said to fail.
type programs struct {
	*agents
	own    protocol.Program
	mu     sync.Mutex
	given  []string
	refuse string
}

func (p *programs) Program() (protocol.Program, error) { return p.own, nil }

func (p *programs) GiveProgram(_ context.Context, _ types.UID, host string, _ protocol.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(host, func(s *protocol.Status) {
		p.given = append(p.given, s.Name)
		next := p.own
		if p.refuse != "" {
			next = *s.Program
			next.Failed = &protocol.ProgramFailure{SHA256: p.own.SHA256, Message: p.refuse}
		}
		s.Program = &next
	})
	return nil
}

// withPrograms is a SampleDB whose agents run an earlier program than the operator does from now on, and are asked to
// go on as that.
func withPrograms(w *world, modify ...func(*v1.SampleDB)) (*v1.SampleDB, *programs) {
	w.Helper()
	modify = append([]func(*v1.SampleDB){asksForAgents}, modify...)
	db := w.started("x", append(modify, func(db *v1.SampleDB) { db.Spec.Instances = 3 })...)
	w.agents.mu.Lock()
	for host, answer := range w.agents.answers {
		answer.Program = &protocol.Program{SHA256: strings.Repeat("a", 64), Architecture: "amd64"}
		w.agents.answers[host] = answer
	}
	w.agents.mu.Unlock()
	p := &programs{agents: w.agents, own: protocol.Program{SHA256: strings.Repeat("b", 64), Architecture: "amd64"}}
	w.reconciler.Programs = p
	return db, p
}

// A new operator gives its program to one agent after the other, the primary's last, and makes no Pod anew.
func TestAgentsAreGivenTheOperatorsProgram(t *testing.T) {
	w := newWorld(t)
	db, p := withPrograms(w)
	for want := 1; want <= 3; want++ {
		if db = w.reconcile(db); len(p.given) != want {
			t.Fatalf("after look %d, %v have been given it: %+v", want, p.given, db.Status.Agents)
		}
	}
	db = w.reconcile(w.reconcile(db))
	if want := []string{"x-2", "x-1", "x-0"}; !slices.Equal(p.given, want) {
		t.Errorf("given to %v, want %v", p.given, want)
	}
	if s := db.Status.Agents; s == nil || len(s.Current) != 3 || s.Program != "bbbbbbbbbbbb" || s.Reason != "" {
		t.Errorf("the status says %+v", s)
	}
	for i := range 3 {
		pod := &corev1.Pod{}
		if w.read(naming.Instance("x", i), pod); pod.Annotations[naming.AnnotationAgentTried] != "" {
			t.Errorf("%s still has %s", pod.Name, naming.AnnotationAgentTried)
		}
	}
	if said := w.drainEvents(); strings.Count(said, "AgentReplaced") != 3 || strings.Contains(said, "Replacing") {
		t.Errorf("events: %s", said)
	}
}

// One that could not go on as it is the last that is given it, also by the next operator.
func TestAProgramThatFailsIsGivenToNoOtherAgent(t *testing.T) {
	w := newWorld(t)
	db, p := withPrograms(w)
	p.refuse = "it ends in the rehearsal"
	for range 4 {
		db = w.reconcile(db)
		w.now = w.now.Add(time.Hour)
	}
	if s := db.Status.Agents; s == nil || s.Reason != "Failed" || !strings.Contains(s.Message, p.refuse) {
		t.Errorf("the status says %+v", s)
	}
	if said := w.drainEvents(); len(p.given) != 1 || strings.Count(said, "AgentFailed") != 1 {
		t.Errorf("given to %v; events: %s", p.given, said)
	}
}

// Where nobody asks and there is no window, a new operator leaves all agents as they are.
func TestAgentsAreReplacedOnRequest(t *testing.T) {
	w := newWorld(t)
	db, p := withPrograms(w, nobodyAsks)
	db = w.reconcile(w.reconcile(db))
	if s := db.Status.Agents; len(p.given) != 0 || s == nil || s.Reason != "NotAsked" {
		t.Fatalf("given to %v; the status says %+v", p.given, s)
	}
	db = w.edit(db, asksForAgents)
	for range 5 {
		db = w.reconcile(db)
	}
	if len(p.given) != 3 || db.Annotations[naming.AnnotationReplaceAgents] != "" {
		t.Errorf("given to %v; the status says %+v; still asked: %q", p.given, db.Status.Agents,
			db.Annotations[naming.AnnotationReplaceAgents])
	}
}

// Agents of a release that can't be given a program keep theirs, and so do their Pods.
func TestAgentsOfAnEarlierReleaseKeepTheirProgram(t *testing.T) {
	w := newWorld(t)
	db, p := withPrograms(w)
	w.agents.mu.Lock()
	for host, answer := range w.agents.answers {
		answer.Program = nil
		w.agents.answers[host] = answer
	}
	w.agents.mu.Unlock()
	before := w.podUIDs(db)
	for range 3 {
		db = w.reconcile(db)
	}
	s := db.Status.Agents
	if len(p.given) != 0 || s == nil || s.Reason != "OlderRelease" || !strings.Contains(s.Message, "x-0, x-1, x-2") {
		t.Errorf("given to %v; the status says %+v", p.given, s)
	}
	if asked := db.Annotations[naming.AnnotationReplaceAgents]; asked != "" {
		t.Errorf("it is still asked for: %q", asked)
	}
	if after := w.podUIDs(db); !slices.Equal(before, after) {
		t.Errorf("the Pods were %v, and are %v", before, after)
	}
}

// podUIDs are those of the instances' Pods.
func (w *world) podUIDs(db *v1.SampleDB) (uids []types.UID) {
	w.Helper()
	for i := range int(db.Spec.Instances) {
		pod := &corev1.Pod{}
		w.read(naming.Instance(db.Name, i), pod)
		uids = append(uids, pod.UID)
	}
	return uids
}

func asksForAgents(db *v1.SampleDB) {
	db.Annotations = map[string]string{naming.AnnotationReplaceAgents: "now"}
}

func nobodyAsks(db *v1.SampleDB) { delete(db.Annotations, naming.AnnotationReplaceAgents) }
