package sampledb

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// The conditions, one function each. They only read the scope, and say nothing
// that changes while the database rests.

// available is true when the primary takes writes, and the Service leads to it.
func available(s *scope) world.Verdict {
	if s.Stop.Closed() && s.DB.DeletionTimestamp == nil {
		return world.No(s.StopReason(), s.StopSentence())
	}
	if s.Primary() != "" {
		return primaryPublished(s)
	}
	if s.DB.DeletionTimestamp != nil {
		return world.No(v1.ReasonDeleting, "the SampleDB is being deleted")
	}
	if lost := s.DataLost(); lost != nil {
		return *lost
	}
	if s.Problem != nil && s.Starting() {
		return world.No(s.Problem.Reason, s.Problem.Message)
	}
	if names := s.Silent(); len(names) > 0 && s.Vain.Reason == "" {
		return world.Unknown("their Pods are ready, but their agents could not be asked: " + strings.Join(names, ", "))
	}
	if t := s.Trouble(); t != nil {
		return world.No(t.Reason, s.WhyNone(t.Message))
	}
	return s.noPrimary()
}

// noPrimary is said where all Pods run, and no instance takes writes.
func (s *scope) noPrimary() world.Verdict {
	switch {
	case s.Vain.Reason != "":
		return s.Vain
	case s.Starting():
		return world.No(v1.ReasonCreating, "the first primary is being set up")
	case s.Stop != nil:
		return world.No(v1.ReasonStarting, s.Explain("the instances start"))
	}
	return world.No(v1.ReasonNoPrimary, s.Explain("no instance takes writes")+s.MajorityLost())
}

// primaryPublished is true when the Service leads to the primary, which takes writes.
func primaryPublished(s *scope) world.Verdict {
	primary := s.Primary()
	if refused := s.WritesRefused(); refused != nil {
		return *refused
	}
	if s.Published(primary) {
		return world.Yes(v1.ReasonPrimaryReady, primary+" takes writes")
	}
	return world.No(v1.ReasonNotPublished, fmt.Sprintf(
		"%s takes writes, but its Pod does not have the label %s=%s yet, so the Service %s does not lead to it",
		primary, naming.LabelRole, protocol.RolePrimary, naming.ReadWriteService(s.DB.Name)))
}

// Readiness is true when everything is as the spec wants it. The first check that
// fails is the reason.
func (s *scope) Readiness() world.Verdict {
	failed := s.Unready()
	if failed == nil {
		failed = isUpgraded(s)
	}
	if failed != nil {
		if failed.Status == "" {
			failed.Status = metav1.ConditionFalse
		}
		return *failed
	}
	if s.Instances() == 1 {
		return world.Yes(v1.ReasonReady, s.Primary()+" takes writes")
	}
	return world.Yes(v1.ReasonReady, fmt.Sprintf("%s takes writes, and all %d instances are ready",
		s.Primary(), s.Instances()))
}

// Unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
func (s *scope) Unready() *world.Verdict {
	for _, check := range []func(*scope) *world.Verdict{
		notDeleting, (*scope).NotStopped, notBlocked, hasPrimary, nothingInTheWay, (*scope).AllInstances, noneTooMany,
		isInitialized, isConfigured, hasStorage, (*scope).AllVote, isCurrent,
	} {
		if failed := check(s); failed != nil {
			return failed
		}
	}
	return nil
}

func notDeleting(s *scope) *world.Verdict {
	if s.DB.DeletionTimestamp == nil {
		return nil
	}
	message := "the SampleDB is being deleted"
	if s.DeletionPolicy.Spares() {
		message = s.DeletionPolicy.Message
	}
	if s.waiting != "" {
		message += "; waits for " + s.waiting
	}
	return &world.Verdict{Reason: v1.ReasonDeleting, Message: message}
}

func notBlocked(s *scope) *world.Verdict {
	if s.Problem == nil {
		return nil
	}
	return &world.Verdict{Reason: s.Problem.Reason, Message: s.Problem.Message}
}

func hasPrimary(s *scope) *world.Verdict {
	if v := available(s); v.Status != metav1.ConditionTrue {
		return &v
	}
	return nil
}

func nothingInTheWay(s *scope) *world.Verdict { return s.Trouble() }

func noneTooMany(s *scope) *world.Verdict {
	var extra []string
	for ordinal, pod := range s.Seen.Pods {
		if ordinal >= s.Instances() {
			extra = append(extra, pod.Name)
		}
	}
	if waits := s.WaitsToScale(); waits != "" {
		return &world.Verdict{Reason: v1.ReasonScaling, Message: waits}
	}
	if len(extra) == 0 {
		return nil
	}
	slices.Sort(extra)
	return &world.Verdict{Reason: v1.ReasonScaling, Message: "being removed: " + strings.Join(extra, ", ")}
}

func isInitialized(s *scope) *world.Verdict { return unlessTrue(initialized(s)) }
func isConfigured(s *scope) *world.Verdict  { return unlessTrue(configurationApplied(s)) }
func hasStorage(s *scope) *world.Verdict    { return unlessTrue(storageReady(s)) }

func isCurrent(s *scope) *world.Verdict {
	if s.Decision.Action == "" || s.Decision.Action == world.ActionNone {
		return nil
	}
	return &world.Verdict{Reason: v1.ReasonUpdating, Message: strings.TrimPrefix(s.Decision.Target+": "+
		s.Decision.Message, ": ")}
}

// isUpgraded fails while the data has another major version than the spec wants.
func isUpgraded(s *scope) *world.Verdict {
	if s.Upgraded.Reason == "" {
		return nil
	}
	return unlessTrue(s.Upgraded)
}

func unlessTrue(v world.Verdict) *world.Verdict {
	if v.Status == metav1.ConditionTrue {
		return nil
	}
	return &v
}

// initialized is true when the init Job has done its work.
func initialized(s *scope) world.Verdict {
	switch {
	case s.InitializedAt != nil:
		return world.Yes(v1.ReasonInitialized, "the init Job has done its work")
	case s.Initial.Reason != "":
		return s.Initial
	}
	return world.No(v1.ReasonInitRunning, "the init Job has not been started yet")
}

// configurationApplied is true when every instance runs with the config.
func configurationApplied(s *scope) world.Verdict {
	if s.Stop.Down() {
		return world.NotTold()
	}
	var unasked, pending, behind []string
	for _, i := range s.Fleet().Instances {
		answer, known := s.Seen.Answers[i.Name]
		switch {
		case !known:
			unasked = append(unasked, i.Name)
		case answer.RejectedRevision != "" && answer.RejectedRevision == s.Config.Revision:
			return world.No(v1.ReasonParameterRejected, fmt.Sprintf("%s keeps its former configuration: %s",
				i.Name, answer.ConfigError))
		case answer.ConfigRevision != s.Config.Revision:
			behind = append(behind, i.Name)
		case len(i.Pending) > 0:
			pending = append(pending, fmt.Sprintf("%s (%s)", i.Name, strings.Join(i.Pending, ", ")))
		}
	}
	switch {
	case len(behind) > 0:
		return world.No(v1.ReasonApplying, "not applied yet by "+strings.Join(behind, ", "))
	case len(pending) > 0:
		return world.No(v1.ReasonRestarting, "a restart is needed by "+strings.Join(pending, ", "))
	case len(unasked) > 0 && s.Starting():
		return world.No(v1.ReasonApplying, "not started yet: "+strings.Join(unasked, ", "))
	case len(unasked) > 0:
		return world.Unknown("could not be asked: " + strings.Join(unasked, ", "))
	}
	return world.Yes(v1.ReasonApplied, "every instance runs with the parameters of the spec")
}

// storageReady is true when every volume has the size in force.
func storageReady(s *scope) world.Verdict {
	if s.Storage.Reason != "" {
		return s.Storage
	}
	return world.No(v1.ReasonProvisioning, fmt.Sprintf("volume %s is being created", naming.Claim(s.DB.Name, 0)))
}
