package world

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// WhyNone adds to the trouble of a Pod why none of the other instances is promoted.
func (s *fleetFacts) WhyNone(trouble string) string {
	switch {
	case s.Vain.Reason != "":
		return trouble + "; " + s.Vain.Message
	case s.Refusal() != "":
		return s.Explain(trouble)
	}
	return trouble
}

// Refusal is why no instance is being promoted, in one word: where each instance
// with data that answers has one, that of the first. "" where some could be promoted,
// or where nobody has led for so short a time that an election may be under way.
func (s *Core) Refusal() string {
	was := meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionAvailable)
	if was == nil || was.Status == metav1.ConditionTrue || s.Now.Sub(was.LastTransitionTime.Time) < electionPatience {
		return ""
	}
	first := ""
	for _, name := range slices.Sorted(maps.Keys(s.Seen.Answers)) {
		a := s.Seen.Answers[name]
		if a.Data == protocol.DataPresent && a.Refusal == "" {
			return ""
		}
		first = cmp.Or(first, a.Refusal)
	}
	return first
}

// electionPatience is how long nobody may lead before it is told why. An election
// takes a second or two, and what keeps an instance from it changes meanwhile.
const electionPatience = 5 * time.Second

// Silent are the instances whose Pods are ready and whose agents did not answer.
func (s *fleetFacts) Silent() []string {
	var names []string
	for _, i := range s.Fleet().Instances {
		if i.Running && !i.Known {
			names = append(names, i.Name)
		}
	}
	return names
}

// Explain adds to a sentence what the agents say of the instances that are not ready.
func (s *fleetFacts) Explain(sentence string) string {
	for _, i := range s.Fleet().Instances {
		if a, known := s.Seen.Answers[i.Name]; known && !i.Ready && a.Message != "" {
			sentence += "; " + i.Name + ": " + a.Message
		}
	}
	return sentence
}

func (s *fleetFacts) AllInstances() *Verdict {
	missing := slices.DeleteFunc(s.Fleet().Instances, func(i Instance) bool { return i.Ready })
	if len(missing) == 0 {
		return nil
	}
	var names, unasked []string
	for _, i := range missing {
		names = append(names, i.Name)
		if i.Running && !i.Known {
			unasked = append(unasked, i.Name)
		}
	}
	sentence := s.Explain("not ready: " + strings.Join(names, ", "))
	if waits := s.WaitsToScale(); waits != "" {
		sentence += "; " + waits
	}
	switch {
	case len(unasked) == len(missing):
		v := Unknown("their agents could not be asked: " + strings.Join(unasked, ", "))
		return &v
	case s.Starting():
		return &Verdict{"", v1.ReasonCreating, sentence}
	case s.Decision.Action != "" && s.Decision.Action != ActionNone:
		return &Verdict{"", v1.ReasonUpdating, sentence}
	case s.Seen.Set != nil && int(s.Seen.Set.Status.Replicas) < s.Instances():
		return &Verdict{"", v1.ReasonScaling, sentence}
	}
	return &Verdict{"", v1.ReasonInstancesUnready, sentence}
}

// WaitsToScale says what keeps instances that are too many, "" for nothing.
func (s *fleetFacts) WaitsToScale() string {
	if s.Scaling.Message == "" {
		return ""
	}
	return fmt.Sprintf("waits to go from %d to %d instances: %s",
		s.Scaling.Replicas, desired.Instances(s.DB), s.Scaling.Message)
}

// AllVote fails where some wanted instance does not count for commits and votes. A
// lone instance counts by itself.
func (s *fleetFacts) AllVote() *Verdict {
	if s.Instances() == 1 {
		return nil
	}
	voters := s.Voters()
	if len(voters) == 0 {
		v := Unknown(fmt.Sprintf("%s does not say which instances count for commits and votes", s.Primary()))
		return &v
	}
	var missing []string
	for _, m := range s.Config.Members {
		if !slices.Contains(voters, m.Name) {
			missing = append(missing, m.Name)
		}
	}
	if weak := s.Durable(); weak.Reason == v1.ReasonWeakened {
		return &weak
	}
	if len(missing) == 0 {
		return nil
	}
	return &Verdict{"", v1.ReasonNotVoting, "do not count for commits and votes yet: " + strings.Join(missing, ", ")}
}

// Durable is true when losing one instance now would lose no acknowledged commit.
func (s *fleetFacts) Durable() Verdict {
	primary := s.Primary()
	answer := s.Seen.Answers[primary]
	switch {
	case s.Instances() == 1:
		return No(v1.ReasonSingleInstance, "the spec asks for one instance: if its volume is lost, its data is lost")
	case s.DB.Spec.Durability == v1.DurabilityAsync:
		return No(v1.ReasonAsynchronous,
			"with spec.durability: async commits wait only for the primary's disk: if it is lost, the last commits "+
				"are lost")
	case slices.Contains([]string{"off", "local", "remote_write"}, s.Config.Parameters["synchronous_commit"]):
		return No(v1.ReasonAsynchronous, fmt.Sprintf("with synchronous_commit = %s in spec.postgresql.parameters a "+
			"commit does not wait for the disks of the standbys",
			s.Config.Parameters["synchronous_commit"]))
	case s.Stop.Down():
		return NotTold()
	case primary == "":
		return Unknown("no instance is known to take writes")
	case answer.Acknowledgements == 0:
		return Unknown(primary + " does not say how many instances have a commit when it is acknowledged")
	case answer.Acknowledgements == 1:
		return No(v1.ReasonWeakened, primary+" continues alone: new commits are on its disk only")
	}
	return Yes(v1.ReasonDurable,
		fmt.Sprintf("an acknowledged commit is on the disks of %d instances: losing one of them loses nothing",
			answer.Acknowledgements))
}

// Adding is a verdict with one more sentence.
func (v Verdict) Adding(sentence string) Verdict {
	if sentence != "" {
		v.Message += ". " + sentence
	}
	return v
}

// Verdict is what a condition says.
type Verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Yes is the verdict of a condition that is true.
func Yes(reason, message string) Verdict { return Verdict{metav1.ConditionTrue, reason, message} }

// No is that of one that is false.
func No(reason, message string) Verdict { return Verdict{metav1.ConditionFalse, reason, message} }

// Unknown is that of one of which nothing is known.
func Unknown(message string) Verdict {
	return Verdict{metav1.ConditionUnknown, v1.ReasonUnknown, message}
}

// Problem is an error that the user can mend: it becomes the reason of the condition Ready.
type Problem struct {
	Reason  string
	Message string
	// Wait is how long until it is looked at again, if nothing happens before.
	Wait time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// SetWhereKnown sets a condition that is there only where there is a verdict.
func (s *Core) SetWhereKnown(out *v1.SampleDBStatus, kind string, v Verdict) {
	if v.Reason == "" {
		meta.RemoveStatusCondition(&out.Conditions, kind)
		return
	}
	meta.SetStatusCondition(&out.Conditions, s.Condition(kind, v))
}

// Condition is the condition of a type that a verdict makes.
func (s *Core) Condition(kind string, v Verdict) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: v.Message,
		ObservedGeneration: s.DB.Generation,
		LastTransitionTime: metav1.NewTime(s.Now).Rfc3339Copy(),
	}
}

// InstanceBefore is what the status had of an instance, nothing where it was not there.
func (s *Core) InstanceBefore(name string) v1.InstanceStatus {
	for _, old := range s.DB.Status.InstanceStatuses {
		if old.Name == name {
			return old
		}
	}
	return v1.InstanceStatus{}
}

// Votes says that an instance counts for commits and votes. While no primary can
// be asked, what it said last still holds.
func (s *Core) Votes(name string) bool {
	if s.Primary() != "" {
		return slices.Contains(s.Voters(), name)
	}
	return slices.ContainsFunc(s.DB.Status.InstanceStatuses,
		func(i v1.InstanceStatus) bool { return i.Name == name && i.Voter })
}

// LogChange logs another reason of Ready.
func (s *Act) LogChange(ctx context.Context, old, now v1.SampleDBStatus) {
	was, is := meta.FindStatusCondition(old.Conditions,
		v1.ConditionReady), meta.FindStatusCondition(now.Conditions, v1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("the state changed", "phase", now.Phase, "ready", now.Ready, "primary", now.Primary,
		"reason", is.Reason, "message", is.Message)
}
