package versions

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

func TestLookIntoTheImage(t *testing.T) {
	running, ended := lookJob{state: jobs.Running}, lookJob{state: jobs.Failed, end: "deadline"}
	found := lookJob{state: jobs.Complete, result: &protocol.ImageResult{Version: "17.12"}}
	away := lookJob{state: jobs.Running, trouble: &pods.Trouble{Cause: pods.Image, Message: "no such host"}}
	pending := lookJob{state: jobs.Running, trouble: &pods.Trouble{Cause: pods.Unschedulable, Message: "no node"}}
	late := lookJob{state: jobs.Late, trouble: pending.trouble}
	for name, c := range map[string]struct {
		look look
		want lookStep
	}{
		"it is not due":                        {look{}, lookNone},
		"it is due":                            {look{due: true}, lookAskRegistry},
		"it is under way":                      {look{due: true, registry: running}, lookNone},
		"the last one is going":                {look{due: true, registry: lookJob{state: jobs.Ending}}, lookNone},
		"it has ended well":                    {look{due: true, registry: found}, lookTake},
		"also where it is not due any more":    {look{registry: found}, lookTake},
		"it has left nothing":                  {look{registry: lookJob{state: jobs.Complete}}, lookGiveUp},
		"it has failed":                        {look{registry: ended}, lookGiveUp},
		"no node takes its Pod":                {look{registry: pending}, lookNone},
		"no node has taken it for ten minutes": {look{registry: late}, lookGiveUp},
		"the registry is away":                 {look{registry: away}, lookAskNode},
		"a node is asked":                      {look{registry: away, node: running}, lookNone},
		"a node has it":                        {look{registry: away, node: found}, lookTake},
		"no node has it either":                {look{registry: away, node: away}, lookGiveUp},
		"what asked the registry is gone":      {look{node: found}, lookTake},
	} {
		if got := c.look.next(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	unusable := lookJob{result: &protocol.ImageResult{Error: "no programs"}, trouble: away.trouble}
	if got := unusable.problem(); got != "no programs" {
		t.Errorf("the problem is %q", got)
	}
}

func TestWhenTheImageIsLookedInto(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	looked := &v1.ImageStatus{Name: "postgres:17", LookedAt: &start}
	failed := &v1.ImageStatus{Name: "postgres:17", LookedAt: &start, Problem: "no such host"}
	fixed := &v1.ImageStatus{Name: "postgres@sha256:1", LookedAt: &start}
	for name, c := range map[string]struct {
		image *v1.ImageStatus
		after time.Duration
		asked bool
		want  bool
	}{
		"not at once":               {&v1.ImageStatus{Name: "postgres:17"}, 9 * time.Minute, false, false},
		"after ten minutes":         {&v1.ImageStatus{Name: "postgres:17"}, 10 * time.Minute, false, true},
		"not in a day":              {looked, 23 * time.Hour, false, false},
		"after a day":               {looked, 25 * time.Hour, false, true},
		"a failed one in two hours": {failed, 2 * time.Hour, false, true},
		"but not in half an hour":   {failed, 30 * time.Minute, false, false},
		"a fixed one once":          {fixed, 25 * time.Hour, false, false},
		"unless it is asked for":    {fixed, time.Minute, true, true},
	} {
		s := topicsOf(world.Core{
			DB: &v1.SampleDB{}, Now: start.Add(c.after),
			Outcomes: world.Outcomes{InitializedAt: &start, Image: c.image},
		})
		if c.asked {
			s.DB.Annotations = map[string]string{naming.AnnotationLookForUpdates: "now"}
		}
		s.Seen.Answers = map[string]protocol.Status{"x-0": {
			Name: "x-0", Role: protocol.RolePrimary, Ready: true, Data: protocol.DataPresent, Leader: "x-0", Term: 1,
		}}
		s.DB.Name, s.DB.UID, s.DB.Spec.Instances = "x", "0b5e", 1
		s.Config.Members = []protocol.Member{{Name: "x-0"}}
		if got := s.lookDue(); got != c.want {
			t.Errorf("%s: %t (the primary is %q)", name, got, s.Primary())
		}
	}
}
