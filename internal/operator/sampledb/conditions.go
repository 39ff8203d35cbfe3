package sampledb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// The conditions, one function each. They only read the scope, and say nothing
// that changes while the database rests.

// available is true when the primary takes writes, and the Service leads to it.
func available(s *scope) verdict {
	if s.stop.Closed() && s.db.DeletionTimestamp == nil {
		return no(s.stopReason(), s.stopSentence())
	}
	if s.primary() != "" {
		return primaryPublished(s)
	}
	if s.db.DeletionTimestamp != nil {
		return no(v1.ReasonDeleting, "the SampleDB is being deleted")
	}
	if lost := s.dataLost(); lost != nil {
		return *lost
	}
	if s.problem != nil && s.starting() {
		return no(s.problem.reason, s.problem.message)
	}
	if names := s.silent(); len(names) > 0 && s.vain.reason == "" {
		return unknown("their Pods are ready, but their agents could not be asked: " + strings.Join(names, ", "))
	}
	if t := s.trouble(); t != nil {
		return no(t.reason, s.whyNone(t.message))
	}
	return s.noPrimary()
}

// whyNone adds to the trouble of a Pod why none of the other instances is promoted.
func (s *fleetFacts) whyNone(trouble string) string {
	switch {
	case s.vain.reason != "":
		return trouble + "; " + s.vain.message
	case s.refusal() != "":
		return s.explain(trouble)
	}
	return trouble
}

// noPrimary is said where all Pods run, and no instance takes writes.
func (s *scope) noPrimary() verdict {
	switch {
	case s.vain.reason != "":
		return s.vain
	case s.starting():
		return no(v1.ReasonCreating, "the first primary is being set up")
	case s.stop != nil:
		return no(v1.ReasonStarting, s.explain("the instances start"))
	}
	return no(v1.ReasonNoPrimary, s.explain("no instance takes writes")+s.majorityLost())
}

// primaryPublished is true when the Service leads to the primary, which takes writes.
func primaryPublished(s *scope) verdict {
	primary := s.primary()
	if refused := s.writesRefused(); refused != nil {
		return *refused
	}
	if s.published(primary) {
		return yes(v1.ReasonPrimaryReady, primary+" takes writes")
	}
	return no(v1.ReasonNotPublished, fmt.Sprintf(
		"%s takes writes, but its Pod does not have the label %s=%s yet, so the Service %s does not lead to it",
		primary, naming.LabelRole, protocol.RolePrimary, naming.ReadWriteService(s.db.Name)))
}

// refusal is why no instance is being promoted, in one word: where each instance
// with data that answers has one, that of the first. "" where some could be promoted,
// or where nobody has led for so short a time that an election may be under way.
func (s *core) refusal() string {
	was := meta.FindStatusCondition(s.db.Status.Conditions, v1.ConditionAvailable)
	if was == nil || was.Status == metav1.ConditionTrue || s.now.Sub(was.LastTransitionTime.Time) < electionPatience {
		return ""
	}
	first := ""
	for _, name := range slices.Sorted(maps.Keys(s.seen.answers)) {
		a := s.seen.answers[name]
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

// silent are the instances whose Pods are ready and whose agents did not answer.
func (s *fleetFacts) silent() []string {
	var names []string
	for _, i := range s.fleet().instances {
		if i.running && !i.known {
			names = append(names, i.name)
		}
	}
	return names
}

// explain adds to a sentence what the agents say of the instances that are not ready.
func (s *fleetFacts) explain(sentence string) string {
	for _, i := range s.fleet().instances {
		if a, known := s.seen.answers[i.name]; known && !i.ready && a.Message != "" {
			sentence += "; " + i.name + ": " + a.Message
		}
	}
	return sentence
}

// readiness is true when everything is as the spec wants it. The first check that
// fails is the reason.
func (s *scope) readiness() verdict {
	failed := s.unready()
	if failed == nil {
		failed = s.isUpgraded()
	}
	if failed != nil {
		if failed.status == "" {
			failed.status = metav1.ConditionFalse
		}
		return *failed
	}
	if s.instances() == 1 {
		return yes(v1.ReasonReady, s.primary()+" takes writes")
	}
	return yes(v1.ReasonReady, fmt.Sprintf("%s takes writes, and all %d instances are ready",
		s.primary(), s.instances()))
}

// unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
func (s *scope) unready() *verdict {
	for _, check := range []func(*scope) *verdict{
		notDeleting, (*scope).notStopped, notBlocked, hasPrimary, nothingInTheWay, (*scope).allInstances, noneTooMany,
		isInitialized, isConfigured, hasStorage, (*scope).allVote, isCurrent,
	} {
		if failed := check(s); failed != nil {
			return failed
		}
	}
	return nil
}

func notDeleting(s *scope) *verdict {
	if s.db.DeletionTimestamp == nil {
		return nil
	}
	message := "the SampleDB is being deleted"
	if s.deletionPolicy.spares() {
		message = s.deletionPolicy.message
	}
	if s.waiting != "" {
		message += "; waits for " + s.waiting
	}
	return &verdict{"", v1.ReasonDeleting, message}
}

func notBlocked(s *scope) *verdict {
	if s.problem == nil {
		return nil
	}
	return &verdict{"", s.problem.reason, s.problem.message}
}

func hasPrimary(s *scope) *verdict {
	if v := available(s); v.status != metav1.ConditionTrue {
		return &v
	}
	return nil
}

func nothingInTheWay(s *scope) *verdict { return s.trouble() }

func (s *fleetFacts) allInstances() *verdict {
	missing := slices.DeleteFunc(s.fleet().instances, func(i instance) bool { return i.ready })
	if len(missing) == 0 {
		return nil
	}
	var names, unasked []string
	for _, i := range missing {
		names = append(names, i.name)
		if i.running && !i.known {
			unasked = append(unasked, i.name)
		}
	}
	sentence := s.explain("not ready: " + strings.Join(names, ", "))
	if waits := s.waitsToScale(); waits != "" {
		sentence += "; " + waits
	}
	switch {
	case len(unasked) == len(missing):
		v := unknown("their agents could not be asked: " + strings.Join(unasked, ", "))
		return &v
	case s.starting():
		return &verdict{"", v1.ReasonCreating, sentence}
	case s.decision.action != "" && s.decision.action != actionNone:
		return &verdict{"", v1.ReasonUpdating, sentence}
	case s.seen.set != nil && int(s.seen.set.Status.Replicas) < s.instances():
		return &verdict{"", v1.ReasonScaling, sentence}
	}
	return &verdict{"", v1.ReasonInstancesUnready, sentence}
}

// waitsToScale says what keeps instances that are too many, "" for nothing.
func (s *fleetFacts) waitsToScale() string {
	if s.scaling.message == "" {
		return ""
	}
	return fmt.Sprintf("waits to go from %d to %d instances: %s",
		s.scaling.replicas, desired.Instances(s.db), s.scaling.message)
}

func noneTooMany(s *scope) *verdict {
	var extra []string
	for ordinal, pod := range s.seen.pods {
		if ordinal >= s.instances() {
			extra = append(extra, pod.Name)
		}
	}
	if waits := s.waitsToScale(); waits != "" {
		return &verdict{"", v1.ReasonScaling, waits}
	}
	if len(extra) == 0 {
		return nil
	}
	slices.Sort(extra)
	return &verdict{"", v1.ReasonScaling, "being removed: " + strings.Join(extra, ", ")}
}

func isInitialized(s *scope) *verdict { return unlessTrue(initialized(s)) }
func isConfigured(s *scope) *verdict  { return unlessTrue(configurationApplied(s)) }
func hasStorage(s *scope) *verdict    { return unlessTrue(storageReady(s)) }

// allVote fails where some wanted instance does not count for commits and votes. A
// lone instance counts by itself.
func (s *fleetFacts) allVote() *verdict {
	if s.instances() == 1 {
		return nil
	}
	voters := s.voters()
	if len(voters) == 0 {
		v := unknown(fmt.Sprintf("%s does not say which instances count for commits and votes", s.primary()))
		return &v
	}
	var missing []string
	for _, m := range s.config.Members {
		if !slices.Contains(voters, m.Name) {
			missing = append(missing, m.Name)
		}
	}
	if weak := s.durable(); weak.reason == v1.ReasonWeakened {
		return &weak
	}
	if len(missing) == 0 {
		return nil
	}
	return &verdict{"", v1.ReasonNotVoting, "do not count for commits and votes yet: " + strings.Join(missing, ", ")}
}

func isCurrent(s *scope) *verdict {
	if s.decision.action == "" || s.decision.action == actionNone {
		return nil
	}
	return &verdict{"", v1.ReasonUpdating, strings.TrimPrefix(s.decision.target+": "+s.decision.message, ": ")}
}

func unlessTrue(v verdict) *verdict {
	if v.status == metav1.ConditionTrue {
		return nil
	}
	return &v
}

// initialized is true when the init Job has done its work.
func initialized(s *scope) verdict {
	switch {
	case s.initializedAt != nil:
		return yes(v1.ReasonInitialized, "the init Job has done its work")
	case s.initial.reason != "":
		return s.initial
	}
	return no(v1.ReasonInitRunning, "the init Job has not been started yet")
}

// configurationApplied is true when every instance runs with the config.
func configurationApplied(s *scope) verdict {
	if s.stop.Down() {
		return notTold()
	}
	var unasked, pending, behind []string
	for _, i := range s.fleet().instances {
		answer, known := s.seen.answers[i.name]
		switch {
		case !known:
			unasked = append(unasked, i.name)
		case answer.RejectedRevision != "" && answer.RejectedRevision == s.config.Revision:
			return no(v1.ReasonParameterRejected, fmt.Sprintf("%s keeps its former configuration: %s",
				i.name, answer.ConfigError))
		case answer.ConfigRevision != s.config.Revision:
			behind = append(behind, i.name)
		case len(i.pending) > 0:
			pending = append(pending, fmt.Sprintf("%s (%s)", i.name, strings.Join(i.pending, ", ")))
		}
	}
	switch {
	case len(behind) > 0:
		return no(v1.ReasonApplying, "not applied yet by "+strings.Join(behind, ", "))
	case len(pending) > 0:
		return no(v1.ReasonRestarting, "a restart is needed by "+strings.Join(pending, ", "))
	case len(unasked) > 0 && s.starting():
		return no(v1.ReasonApplying, "not started yet: "+strings.Join(unasked, ", "))
	case len(unasked) > 0:
		return unknown("could not be asked: " + strings.Join(unasked, ", "))
	}
	return yes(v1.ReasonApplied, "every instance runs with the parameters of the spec")
}

// durable is true when losing one instance now would lose no acknowledged commit.
func (s *fleetFacts) durable() verdict {
	primary := s.primary()
	answer := s.seen.answers[primary]
	switch {
	case s.instances() == 1:
		return no(v1.ReasonSingleInstance, "the spec asks for one instance: if its volume is lost, its data is lost")
	case s.db.Spec.Durability == v1.DurabilityAsync:
		return no(v1.ReasonAsynchronous,
			"with spec.durability: async commits wait only for the primary's disk: if it is lost, the last commits "+
				"are lost")
	case slices.Contains([]string{"off", "local", "remote_write"}, s.config.Parameters["synchronous_commit"]):
		return no(v1.ReasonAsynchronous, fmt.Sprintf("with synchronous_commit = %s in spec.postgresql.parameters a "+
			"commit does not wait for the disks of the standbys",
			s.config.Parameters["synchronous_commit"]))
	case s.stop.Down():
		return notTold()
	case primary == "":
		return unknown("no instance is known to take writes")
	case answer.Acknowledgements == 0:
		return unknown(primary + " does not say how many instances have a commit when it is acknowledged")
	case answer.Acknowledgements == 1:
		return no(v1.ReasonWeakened, primary+" continues alone: new commits are on its disk only")
	}
	return yes(v1.ReasonDurable,
		fmt.Sprintf("an acknowledged commit is on the disks of %d instances: losing one of them loses nothing",
			answer.Acknowledgements))
}

// storageReady is true when every volume has the size in force.
func storageReady(s *scope) verdict {
	if s.storage.reason != "" {
		return s.storage
	}
	return no(v1.ReasonProvisioning, fmt.Sprintf("volume %s is being created", naming.Claim(s.db.Name, 0)))
}
