package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// exchangeTopic gives agents the operator's program.
type exchangeTopic struct {
	base
	// AgentsStatus is which agents run the operator's program; AgentsNext is when they are looked at again, zero for
	// never.
	AgentsStatus *v1.AgentsStatus
	AgentsNext   time.Time
}

// The reasons for which no agent is given the program now (docs/upgradesteps.md).
const (
	agentsCurrent  = "Current"             // all run it
	agentsWait     = "UnderWay"            // one has been given it, and has not said yet what came of it
	agentsFailed   = "Failed"              // one could not go on as it: no other one tries
	agentsNotReady = "NotReady"            // the SampleDB is not ready, or something else is being done with it
	agentsNotAsked = "NotAsked"            // nobody asks, and there is no window
	agentsWindow   = "OutsideWindow"       // spec.update.window is not open
	agentsForeign  = "AnotherArchitecture" // the agents that are left run on another architecture than the operator
	agentsOlder    = "OlderRelease"        // the agents that are left can't be given a program
	agentsGive     = "Give"                // one is given it
)

// agentView is what a decision about agents' programs is made of.
type agentView struct {
	target protocol.Program
	upgrade.Permission
	now time.Time
	// busy says why no agent may be replaced, "" where one may be.
	busy   string
	agents []agentSeen
}

// agentSeen is an agent in it.
type agentSeen struct {
	name    string
	primary bool
	// answers says that it did. runs is the program that it runs then, nil where it is of a release that can't be given
	// one.
	answers bool
	runs    *protocol.Program
	// tried says that it was given the target, late that this was long ago, ended that its container has ended since.
	tried, late, ended bool
}

// agentDecision says which agent is given the program, or why none is, and when that changes by itself, zero for never.
type agentDecision struct {
	give, reason, message string
	at                    time.Time
}

// decideAgent picks at most one agent to give the program to: standbys before the primary, and one at a time. A program
// that has failed is given to nobody any more.
func decideAgent(v agentView) agentDecision {
	t := v.tally()
	soon := v.now.Add(world.PauseStuck)
	switch {
	case t.failed != "":
		return agentDecision{reason: agentsFailed, message: t.failed}
	case slices.ContainsFunc(t.due, func(a agentSeen) bool { return a.waits(v.target) }):
		return agentDecision{"", agentsWait, "an agent has been given the operator's program", soon}
	case len(t.due) > 0 && !v.permitted():
		return v.wait()
	case len(t.due)+len(t.foreign)+len(t.older)+t.silent > 0 && v.busy != "":
		return agentDecision{"", agentsNotReady, v.busy, soon}
	case len(t.due) > 0:
		next := slices.MinFunc(t.due, func(a, b agentSeen) int {
			return world.InOrder(world.Instance{Name: a.name, Primary: a.primary}, world.Instance{Name: b.name,
				Primary: b.primary})
		})
		return agentDecision{next.name, agentsGive, next.name + " goes on as the operator's program",
			v.now.Add(time.Second)}
	}
	return t.rest()
}

// permitted says that an agent may be replaced now.
func (v *agentView) permitted() bool {
	if v.Asked && (!v.InWindow || v.Window == nil) {
		return true
	}
	return v.Window != nil && (v.Asked || v.Automatic) && v.Window.Open(v.now)
}

// wait is the decision where no agent may be replaced now.
func (v *agentView) wait() agentDecision {
	if v.Window == nil || !v.Asked && !v.Automatic {
		return agentDecision{reason: agentsNotAsked, message: "the agents go on as the operator's program when the " +
			"annotation " + string(world.RequestReplaceAgents) + "=now asks for it, or in spec.update.window"}
	}
	return agentDecision{"", agentsWindow, "the agents go on as the operator's program in spec.update.window",
		v.Window.Next(v.now)}
}

// agentTally is how the agents stand to the program: which can be given it, which can't, how many do not answer, and
// what failed, "" for nothing.
type agentTally struct {
	due            []agentSeen
	foreign, older []string
	silent         int
	failed         string
}

// tally goes through the agents until one has failed.
func (v *agentView) tally() (t agentTally) {
	for _, a := range v.agents {
		switch failed := a.failure(v.target); {
		case !a.answers:
			t.silent++
		case a.runs == nil:
			t.older = append(t.older, a.name)
		case a.runs.SHA256 == v.target.SHA256:
		case failed != "":
			t.failed = fmt.Sprintf("%s does not go on as the operator's program: %s", a.name, failed)
			return t
		case a.runs.Architecture != v.target.Architecture:
			t.foreign = append(t.foreign, a.name)
		default:
			t.due = append(t.due, a)
		}
	}
	return t
}

// rest is the decision where no agent is left that can be given the program.
func (t *agentTally) rest() agentDecision {
	const with = "; its agent is replaced with its Pod"
	switch {
	case len(t.older) > 0:
		return agentDecision{reason: agentsOlder, message: "the agent is of a release that can't be replaced in " +
			"place: " + strings.Join(t.older, ", ") + with}
	case len(t.foreign) > 0:
		return agentDecision{reason: agentsForeign, message: "the agent runs on another architecture than the " +
			"operator: " + strings.Join(t.foreign, ", ") + with}
	}
	return agentDecision{reason: agentsCurrent}
}

// failure is why an agent does not go on as a program, "" where that is not known.
func (a agentSeen) failure(target protocol.Program) string {
	said := a.said(target)
	switch {
	case said != nil && !said.Busy:
		return said.Message
	case a.tried && a.ended && a.runs != nil && a.runs.SHA256 != target.SHA256:
		return "its container has ended since it was given it"
	}
	return ""
}

// waits says that an agent was given a program and has not said yet what came of it.
func (a agentSeen) waits(target protocol.Program) bool {
	return a.tried && !a.late && !a.ended && a.said(target) == nil
}

// said is what an agent says of a program that it does not go on as, nil for nothing.
func (a agentSeen) said(target protocol.Program) *protocol.ProgramFailure {
	if a.runs == nil || a.runs.Failed == nil || a.runs.Failed.SHA256 != target.SHA256 {
		return nil
	}
	return a.runs.Failed
}

// ApplyAgents gives the next agent the operator's program.
func (s *exchangeTopic) ApplyAgents(ctx context.Context) error {
	if s.Programs == nil || s.Starting() {
		return nil
	}
	target, err := s.Programs.Program()
	if err != nil {
		return fmt.Errorf("read the operator's own program: %w", err)
	}
	v, err := s.agentView(target)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if err := s.endTries(ctx, target); err != nil {
		return err
	}
	d := decideAgent(v)
	s.noteAgents(v, d)
	s.AgentsNext = d.at
	switch d.reason {
	case agentsGive:
		return s.giveProgram(ctx, d, target)
	case agentsCurrent, agentsForeign, agentsOlder, agentsFailed:
		if v.Asked && v.busy == "" {
			return s.Settle(ctx, world.RequestReplaceAgents)
		}
	}
	return nil
}

// endTries forgets that agents were given a program that they run now. If a container ends later, that is another
// matter.
func (s *exchangeTopic) endTries(ctx context.Context, target protocol.Program) error {
	for ordinal, pod := range s.Seen.Pods {
		runs := s.Seen.Answers[naming.Instance(s.DB.Name, ordinal)].Program
		tried, _, _ := s.triedAgent(pod, target)
		if !tried || runs == nil || runs.SHA256 != target.SHA256 {
			continue
		}
		if err := s.noteTried(ctx, pod, ""); err != nil {
			return err
		}
		s.AddEvent(world.EventAgentReplaced, fmt.Sprintf("the agent of %s runs the operator's program (%s)", pod.Name,
			short(target.SHA256)))
	}
	return nil
}

// noteTried notes on a Pod what its agent was given, "" for nothing.
func (s *exchangeTopic) noteTried(ctx context.Context, pod *corev1.Pod, tried string) error {
	changed := pod.DeepCopy()
	if delete(changed.Annotations, naming.AnnotationAgentTried); tried != "" {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, naming.AnnotationAgentTried, tried)
	}
	err := s.Client.Patch(ctx, changed, client.MergeFrom(pod), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("note on Pod %s that its agent is given a program: %w", pod.Name, err)
	}
	return nil
}

// agentView is what the scope knows of the agents' programs.
func (s *exchangeTopic) agentView(target protocol.Program) (agentView, error) {
	permission, err := s.Permission(world.RequestReplaceAgents)
	if err != nil {
		return agentView{}, err
	}
	v := agentView{target: target, Permission: permission, now: s.Now}
	switch {
	case s.Decision.Action != world.ActionNone || s.Moving != "" || s.Pulling() || s.RestoreWanted() ||
		s.Asks(world.RequestSwitchover):
		v.busy = "something else is being done with the instances"
	case s.Others.Readiness().Status != metav1.ConditionTrue || !s.Healthy():
		v.busy = "the SampleDB is not ready"
	}
	leader := s.Leader()
	for ordinal := range s.Instances() {
		a := agentSeen{name: naming.Instance(s.DB.Name, ordinal)}
		a.primary = a.name == leader
		if answer, known := s.Seen.Answers[a.name]; known {
			a.answers, a.runs = true, answer.Program
		}
		if pod := s.Seen.Pods[ordinal]; pod != nil {
			a.tried, a.late, a.ended = s.triedAgent(pod, target)
		}
		v.agents = append(v.agents, a)
	}
	return v, nil
}

// agentPatience is how long an agent may take to say what came of a program that it was given. After that it is given
// it again: the operator may have ended before.
const agentPatience = 2 * time.Minute

// triedAgent says whether the agent of a Pod was given a program, and whether its container has ended since.
func (s *exchangeTopic) triedAgent(pod *corev1.Pod, target protocol.Program) (tried, late, ended bool) {
	words := strings.Fields(pod.Annotations[naming.AnnotationAgentTried])
	if len(words) != 3 || words[0] != target.SHA256 {
		return false, false, false
	}
	at, err := time.Parse(time.RFC3339, words[1])
	return true, err != nil || s.Now.Sub(at) > agentPatience, words[2] != containerID(pod)
}

// containerID is that of the container with the agent, "none" where it is not known.
func containerID(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == naming.ContainerPostgreSQL {
			return cmp.Or(c.ContainerID, "none")
		}
	}
	return "none"
}

// noteAgents says in the status which agents run the operator's program, and tells of one that can't.
func (s *exchangeTopic) noteAgents(v agentView, d agentDecision) {
	status := &v1.AgentsStatus{Program: short(v.target.SHA256)}
	for _, a := range v.agents {
		if a.runs != nil && a.runs.SHA256 == v.target.SHA256 {
			status.Current = append(status.Current, a.name)
		}
	}
	if len(status.Current) < len(v.agents) {
		status.Reason, status.Message = d.reason, d.message
	}
	before := s.DB.Status.Agents
	if d.reason == agentsFailed && (before == nil || before.Message != d.message) {
		s.AddWarning(world.EventAgentFailed, d.message)
	}
	s.AgentsStatus = status
}

func short(sha string) string { return sha[:min(12, len(sha))] }

// giveProgram gives an agent the operator's program. That it was given is noted before, on its Pod: if its container
// ends by it, no other one is given it. Of all SampleDBs one agent at a time is given it.
func (s *exchangeTopic) giveProgram(ctx context.Context, d agentDecision, target protocol.Program) error {
	if !s.Giving.TryLock() {
		return nil
	}
	defer s.Giving.Unlock()
	ordinal, _ := naming.Ordinal(d.give)
	pod := s.Seen.Pods[ordinal]
	if pod == nil || !world.Reachable(pod) {
		return nil
	}
	words := []string{target.SHA256, s.Now.UTC().Format(time.RFC3339), containerID(pod)}
	if err := s.noteTried(ctx, pod, strings.Join(words, " ")); err != nil {
		return err
	}
	if err := s.Programs.GiveProgram(ctx, s.DB.UID, pod.Status.PodIP, s.Config); err != nil {
		// Why is in the agent's own status. If it could not be asked, nothing has come of it, and it is given it again.
		return fmt.Errorf("give the agent of %s the operator's program: %w", pod.Name, err)
	}
	return nil
}
