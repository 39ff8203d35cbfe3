package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// The phases: summaries for people, computed from the conditions and never read.
const (
	phasePending     = "Pending"     // waits for the cluster: a node, a volume
	phaseCreating    = "Creating"    // first start
	phaseRestoring   = "Restoring"   // the data of spec.restoreFrom is being brought back
	phaseReady       = "Ready"       // all is as wanted
	phaseUpdating    = "Updating"    // takes writes while a change is being applied
	phaseDegraded    = "Degraded"    // takes writes, but something is not as it should be
	phaseUnavailable = "Unavailable" // took writes before, and does not now
	phaseBlocked     = "Blocked"     // the user has to do something
	phaseStopping    = "Stopping"    // spec.stopped: is to have no Pods
	phaseStopped     = "Stopped"     // has none
	phaseSleeping    = "Sleeping"    // spec.sleepAfter: has none until a client comes
	phaseStarting    = "Starting"    // was stopped, and takes no writes yet
	phaseDeleting    = "Deleting"    // goes
)

// status is what the SampleDB's status should be now. It changes only when
// something happened: at rest it stays the same to the byte.
func (s *scope) status() v1.SampleDBStatus {
	old := s.db.Status
	out := v1.SampleDBStatus{
		ObservedGeneration: s.db.Generation,
		Instances:          int32(len(s.seen.pods)), //nolint:gosec // so many Pods there never are
		Selector:           labels.SelectorFromSet(naming.InstanceSelector(s.db.Name)).String(),
		Primary:            s.primary(),
		Term:               old.Term,
		Version:            old.Version,
		FirstVersion:       s.firstVersion(),
		Image:              s.image,
		Update:             s.update,
		Major:              int32(s.config.Major), //nolint:gosec // of the spec
		Upgrade:            s.upgrade,
		Rehearsal:          s.rehearsal,
		Restart:            s.restart,
		Stop:               s.stop,
		Finish:             s.finish,
		SortedBy:           s.sortedBy,
		Agents:             cmp.Or(s.agents, old.Agents),
		Pooler:             s.poolerStatus(),
		SystemIdentifier:   s.config.SystemIdentifier,
		InitializedAt:      s.initializedAt,
		Password:           s.passwordStatus(),
		ClientAuthorities:  s.trust,
		AppHosts:           s.appHosts,
		Authority:          s.authorityStatus(),
		Roots:              s.roots,
		Restore:            old.Restore,
		Backup:             s.backupStatus(),
		Storage:            s.storageStatus(),
		InstanceStatuses:   s.instanceStatuses(),
		Conditions:         slices.Clone(old.Conditions),
	}
	if out.Primary == "" && len(s.silent()) > 0 {
		out.Primary = old.Primary // not known is not gone
	}
	if out.Primary == "" {
		out.LastPrimary, out.Refusal = cmp.Or(old.Primary, old.LastPrimary), cmp.Or(s.vain.reason, s.refusal())
	}
	if answer, known := s.seen.answers[out.Primary]; known {
		out.Term = int64(min(answer.Term, math.MaxInt64))
	}
	if answer, known := s.seen.answers[out.Primary]; known && answer.ServerVersion != "" {
		out.Version = answer.ServerVersion
	}
	for _, i := range out.InstanceStatuses {
		if i.Ready {
			out.ReadyInstances++
		}
	}
	out.Ready = fmt.Sprintf("%d/%d", out.ReadyInstances, s.instances())
	for _, c := range []struct {
		kind    string
		verdict verdict
	}{
		{v1.ConditionReady, s.readiness()},
		{v1.ConditionAvailable, available(s)},
		{v1.ConditionInitialized, initialized(s)},
		{v1.ConditionConfigurationApplied, configurationApplied(s)},
		{v1.ConditionDurable, s.durable()},
		{v1.ConditionStorageReady, storageReady(s)},
	} {
		meta.SetStatusCondition(&out.Conditions, s.condition(c.kind, c.verdict))
	}
	s.setFurtherConditions(&out)
	s.setReaders(&out)
	s.setArchiveConditions(&out)
	s.setRestored(&out)
	out.Phase = summary(out)
	return out
}

// setFurtherConditions sets the conditions that are only there where they have something to say.
func (s *scope) setFurtherConditions(out *v1.SampleDBStatus) {
	if s.authoritySeen {
		s.setWhereKnown(out, v1.ConditionAuthorityRotated, s.authorityRotated)
	}
	if s.passwordSeen {
		s.setWhereKnown(out, v1.ConditionPasswordRotated, s.passwordRotated)
	}
	s.setWhereKnown(out, v1.ConditionHasRoom, s.hasRoom(out.InstanceStatuses))
	s.setWhereKnown(out, v1.ConditionOnTime, s.machines)
	s.setWhereKnown(out, v1.ConditionRootReplaced, s.rootReplaced)
	s.setWhereKnown(out, v1.ConditionUpToDate, s.asBefore(v1.ConditionUpToDate, s.upToDate()))
	s.setWhereKnown(out, v1.ConditionUpgraded, s.upgraded)
	s.setWhereKnown(out, v1.ConditionSideClosed, s.sideClosed())
	s.setWhereKnown(out, v1.ConditionCollationsCurrent, s.collationsCurrent())
	s.setWhereKnown(out, v1.ConditionCertificateServed, s.certificateServed())
	s.setWhereKnown(out, v1.ConditionSurvivesZoneLoss, s.survivesZoneLoss())
	s.setWhereKnown(out, v1.ConditionPrimaryPreferred, s.preferred().verdict)
	s.setWhereKnown(out, v1.ConditionQueriesAnswered, s.queriesAnswered())
	s.setWhereKnown(out, v1.ConditionDrillsPassed, s.drillsPassed())
	s.setWhereKnown(out, v1.ConditionPoolerReady, s.poolerReady())
}

// setArchiveConditions sets the conditions about the archive. Scheduled is there only with a schedule, RetentionApplied
// when there is something to keep, KeysHeld with encryption, Intact when the archive was read again.
func (s *scope) setArchiveConditions(out *v1.SampleDBStatus) {
	meta.SetStatusCondition(&out.Conditions, s.condition(v1.ConditionArchiving, s.archiving()))
	s.setWhereKnown(out, v1.ConditionRetentionApplied, s.retentionApplied(out.Backup))
	s.setWhereKnown(out, v1.ConditionKeysHeld, s.keysHeld(out.Backup))
	s.setWhereKnown(out, v1.ConditionIntact, intact(s.scrub()))
	s.setWhereKnown(out, v1.ConditionCopied, s.isCopied(out.Backup))
	switch {
	case s.backup == nil || s.backup.Schedule == "" && s.scheduled.reason == "":
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionScheduled)
	case s.scheduled.reason != "": // else the reconcile did not get there
		meta.SetStatusCondition(&out.Conditions, s.condition(v1.ConditionScheduled, s.scheduled))
	}
}

// setWhereKnown sets a condition that is there only where there is a verdict.
func (s *core) setWhereKnown(out *v1.SampleDBStatus, kind string, v verdict) {
	if v.reason == "" {
		meta.RemoveStatusCondition(&out.Conditions, kind)
		return
	}
	meta.SetStatusCondition(&out.Conditions, s.condition(kind, v))
}

// setRestored sets what there is only with spec.restoreFrom or spec.restore, where the reconcile got there.
func (s *restoreTopic) setRestored(out *v1.SampleDBStatus) {
	if s.restoreSeen {
		out.Restore = s.restore
	}
	switch {
	case s.db.Spec.RestoreFrom == nil && s.db.Spec.Restore == nil && !s.inPlace() && !s.hasBegunAgain():
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionRestored)
	case s.restored.reason != "":
		meta.SetStatusCondition(&out.Conditions, s.condition(v1.ConditionRestored, s.restored))
	}
}

// condition is the condition of a type that a verdict makes.
func (s *core) condition(kind string, v verdict) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: s.db.Generation,
		LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	}
}

// instanceStatuses are those of the wanted instances, and beyond them of those whose Pod is still
// there or that still count.
func (s *scope) instanceStatuses() []v1.InstanceStatus {
	ordinals := map[int]bool{}
	for i := range s.instances() {
		ordinals[i] = true
	}
	for i := range s.seen.pods {
		ordinals[i] = true
	}
	for _, old := range s.db.Status.InstanceStatuses {
		if i, known := naming.Ordinal(old.Name); known && s.votes(old.Name) {
			ordinals[i] = true
		}
	}
	var out []v1.InstanceStatus
	for _, i := range slices.Sorted(maps.Keys(ordinals)) {
		out = append(out, s.instanceStatus(i))
	}
	return out
}

func (s *scope) instanceStatus(ordinal int) v1.InstanceStatus {
	name := naming.Instance(s.db.Name, ordinal)
	pod := s.seen.pods[ordinal]
	answer, known := s.seen.answers[name]
	out := v1.InstanceStatus{Name: name, Voter: s.votes(name), Zone: s.zoneOf(name), Volume: s.volumeStatus(name),
		WAL: s.walStatus(name)}
	if pod != nil {
		out.Version, out.ImageID = s.versionOf(name), desired.ImageID(pod, naming.ContainerPostgreSQL)
	}
	switch {
	case pod == nil && s.stop.Down():
		out.Reason, out.Message = v1.ReasonStopped, "it is stopped"
	case pod == nil:
		out.Reason, out.Message = "NoPod", "it has no Pod"
	case known:
		out.Role, out.Ready = s.shownRole(answer), s.instanceReady(name)
		out.Reason, out.Message = s.said(answer)
		if answer.Late {
			out.Message += "; no client is sent here to read: it is later than service.readMaxLag"
		}
	case podTrouble(pod) != nil:
		t := podTrouble(pod)
		out.Reason, out.Message = t.reason, t.message
	case pods.Ready(pod):
		out.Role = knownRole(pod.Labels[naming.LabelRole])
		out.Reason, out.Message = v1.ReasonUnknown, "its agent could not be asked"
	default:
		out.Reason, out.Message = "Starting", "its Pod is not ready"
	}
	return out
}

// versionOf is the PostgreSQL version that an instance runs. What an agent said last still holds while it is silent.
func (s *scope) versionOf(name string) string {
	if answer, known := s.seen.answers[name]; known && answer.ServerVersion != "" {
		return answer.ServerVersion
	}
	return s.instanceBefore(name).Version
}

// instanceBefore is what the status had of an instance, nothing where it was not there.
func (s *core) instanceBefore(name string) v1.InstanceStatus {
	for _, old := range s.db.Status.InstanceStatuses {
		if old.Name == name {
			return old
		}
	}
	return v1.InstanceStatus{}
}

// votes says that an instance counts for commits and votes. While no primary can
// be asked, what it said last still holds.
func (s *core) votes(name string) bool {
	if s.primary() != "" {
		return slices.Contains(s.voters(), name)
	}
	return slices.ContainsFunc(s.db.Status.InstanceStatuses,
		func(i v1.InstanceStatus) bool { return i.Name == name && i.Voter })
}

// shownRole is the role that an agent claims, but for a primary that another has
// followed and that has not heard of it yet.
func (s *scope) shownRole(answer protocol.Status) string {
	if answer.Role == protocol.RolePrimary && answer.Name != s.leader() {
		return ""
	}
	return string(answer.Role)
}

// knownRole is the role in a Pod's label, where it is one.
func knownRole(label string) string {
	if r := protocol.Role(label); r == protocol.RolePrimary || r == protocol.RoleStandby {
		return label
	}
	return ""
}

// Reasons of Ready by the phase that they stand for.
var (
	pendingReasons = []string{v1.ReasonUnschedulable, v1.ReasonPodRefused, v1.ReasonProvisioning}
	blockedReasons = []string{
		v1.ReasonNameTaken, v1.ReasonInvalidSpec, v1.ReasonImageUnusable, v1.ReasonStorageClassNotFound,
		v1.ReasonInitFailed, v1.ReasonConfigMapNotFound, v1.ReasonSecretNotFound,
		v1.ReasonParameterRejected, v1.ReasonResizeRefused, v1.ReasonCrashing,
		v1.ReasonRestoreFailed, v1.ReasonRestoreSourceNotFound, v1.ReasonUpgradeFailed,
		v1.ReasonNotRehearsed, v1.ReasonDataLost, v1.ReasonDataDoesNotFit, v1.ReasonNeedsAnotherInstance,
		v1.ReasonDataSetAside,
	}
	updatingReasons = []string{
		v1.ReasonUpdating, v1.ReasonScaling, v1.ReasonNotVoting, v1.ReasonApplying, v1.ReasonRestarting,
		v1.ReasonResizing, v1.ReasonProvisioning, v1.ReasonUpgrading, v1.ReasonReplacingVolumes,
		v1.ReasonReplacementWaits,
	}
)

// summary is the phase that the conditions amount to.
func summary(status v1.SampleDBStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
	takesWrites := meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable)
	switch {
	case ready == nil:
		return phasePending
	case ready.Reason == v1.ReasonDeleting:
		return phaseDeleting
	case ready.Status == metav1.ConditionTrue:
		return phaseReady
	case status.Stop.Closed() || status.Stop != nil && status.Stop.Step == v1.StopWaiting:
		return stopPhase(status.Stop)
	case slices.Contains(blockedReasons, ready.Reason):
		return phaseBlocked
	case status.Stop != nil:
		return phaseStarting
	case ready.Reason == v1.ReasonRestoring:
		return phaseRestoring
	case status.InitializedAt == nil:
		return firstPhase(ready.Reason)
	case takesWrites && slices.Contains(updatingReasons, ready.Reason):
		return phaseUpdating
	case takesWrites:
		return phaseDegraded
	}
	return phaseUnavailable
}

// firstPhase is the phase of a database that has not been initialized yet.
func firstPhase(reason string) string {
	if slices.Contains(pendingReasons, reason) {
		return phasePending
	}
	return phaseCreating
}

// stopPhase is the phase of a database that is stopped, or is to be.
func stopPhase(stop *v1.StopStatus) string {
	switch {
	case stop.Step != v1.StopStopped:
		return phaseStopping
	case stop.Sleeps():
		return phaseSleeping
	}
	return phaseStopped
}

// report writes the status where it has changed, and then the events.
func (s *scope) report(ctx context.Context) error {
	s.observeRoots()
	s.paceMachines()
	status := s.status()
	s.reported = status
	s.Metrics.Observe(s.db, status)
	s.Metrics.ObserveVolumes(s.db, s.rooms(desired.DataVolume))
	s.Metrics.ObserveKeptWAL(s.db, s.seen.answers[s.primary()].KeptWAL)
	status.Backup = archiveNews(s.db.Status, status, s.now)
	if !equality.Semantic.DeepEqual(s.db.Status, status) {
		changed := s.db.DeepCopy()
		changed.Status = status
		write := freshness.Alone
		if s.db.Status.Upgrade.HasSides() || status.Upgrade.HasSides() {
			write = freshness.Shared // a write that comes late must not turn a side that was opened since
		}
		if there, err := write(ctx, s.Client, s.db, changed); err != nil || !there {
			return err
		}
		s.statuses.Note(changed, changed.Status)
		s.logChange(ctx, s.db.Status, status)
		s.events = append(s.events, changes(s.db.Status, status)...)
	}
	for _, e := range s.events {
		s.Events.Eventf(s.db, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
	return nil
}

// logChange logs another reason of Ready.
func (s *act) logChange(ctx context.Context, old, now v1.SampleDBStatus) {
	was, is := meta.FindStatusCondition(old.Conditions,
		v1.ConditionReady), meta.FindStatusCondition(now.Conditions, v1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("the state changed", "phase", now.Phase, "ready", now.Ready, "primary", now.Primary,
		"reason", is.Reason, "message", is.Message)
}
