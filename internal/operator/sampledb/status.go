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

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/archive"
	"toban.dev/internal/operator/sampledb/world"
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
	old := s.DB.Status
	out := v1.SampleDBStatus{
		ObservedGeneration: s.DB.Generation,
		Instances:          int32(len(s.Seen.Pods)), //nolint:gosec // so many Pods there never are
		Selector:           labels.SelectorFromSet(naming.InstanceSelector(s.DB.Name)).String(),
		Primary:            s.Primary(),
		Term:               old.Term,
		Version:            old.Version,
		FirstVersion:       s.FirstVersion(),
		Image:              s.Image,
		Update:             s.Update,
		Major:              int32(s.Config.Major), //nolint:gosec // of the spec
		Upgrade:            s.Upgrade,
		Rehearsal:          s.Rehearsal,
		Restart:            s.Restart,
		Stop:               s.Stop,
		Finish:             s.Finish,
		SortedBy:           s.SortedBy,
		Agents:             cmp.Or(s.AgentsStatus, old.Agents),
		Pooler:             s.PoolerStatus(),
		SystemIdentifier:   s.Config.SystemIdentifier,
		InitializedAt:      s.InitializedAt,
		Password:           s.PasswordStatus(),
		ClientAuthorities:  s.Trust,
		AppHosts:           s.AppHosts,
		Authority:          s.AuthorityStatus(),
		Roots:              s.Roots,
		Restore:            old.Restore,
		Backup:             s.BackupStatus(),
		Storage:            s.StorageStatus(),
		InstanceStatuses:   s.InstanceStatuses(),
		Conditions:         slices.Clone(old.Conditions),
	}
	if out.Backup != nil {
		out.Backup.Copy = s.CopyStatus()
	}
	if out.Primary == "" && len(s.Silent()) > 0 {
		out.Primary = old.Primary // not known is not gone
	}
	if out.Primary == "" {
		out.LastPrimary, out.Refusal = cmp.Or(old.Primary, old.LastPrimary), cmp.Or(s.Vain.Reason, s.Refusal())
	}
	if answer, known := s.Seen.Answers[out.Primary]; known {
		out.Term = int64(min(answer.Term, math.MaxInt64))
	}
	if answer, known := s.Seen.Answers[out.Primary]; known && answer.ServerVersion != "" {
		out.Version = answer.ServerVersion
	}
	for _, i := range out.InstanceStatuses {
		if i.Ready {
			out.ReadyInstances++
		}
	}
	out.Ready = fmt.Sprintf("%d/%d", out.ReadyInstances, s.Instances())
	for _, c := range []struct {
		kind    string
		verdict world.Verdict
	}{
		{v1.ConditionReady, s.Readiness()},
		{v1.ConditionAvailable, available(s)},
		{v1.ConditionInitialized, initialized(s)},
		{v1.ConditionConfigurationApplied, configurationApplied(s)},
		{v1.ConditionDurable, s.Durable()},
		{v1.ConditionStorageReady, storageReady(s)},
	} {
		meta.SetStatusCondition(&out.Conditions, s.Condition(c.kind, c.verdict))
	}
	s.setFurtherConditions(&out)
	s.SetReaders(&out)
	s.setArchiveConditions(&out)
	s.SetRestored(&out)
	out.Phase = summary(out)
	return out
}

// setFurtherConditions sets the conditions that are only there where they have something to say.
func (s *scope) setFurtherConditions(out *v1.SampleDBStatus) {
	if s.AuthoritySeen {
		s.SetWhereKnown(out, v1.ConditionAuthorityRotated, s.AuthorityRotated)
	}
	if s.PasswordSeen {
		s.SetWhereKnown(out, v1.ConditionPasswordRotated, s.PasswordRotated)
	}
	s.SetWhereKnown(out, v1.ConditionHasRoom, s.HasRoom(out.InstanceStatuses))
	s.SetWhereKnown(out, v1.ConditionOnTime, s.Machines)
	s.SetWhereKnown(out, v1.ConditionRootReplaced, s.RootReplaced)
	s.SetWhereKnown(out, v1.ConditionUpToDate, s.AsBefore(v1.ConditionUpToDate, s.UpToDate()))
	for _, annex := range s.annexes.Conditions {
		annex(func(kind string, v world.Verdict) { s.SetWhereKnown(out, kind, v) })
	}
	s.SetWhereKnown(out, v1.ConditionCollationsCurrent, s.CollationsCurrent())
	s.SetWhereKnown(out, v1.ConditionCertificateServed, s.CertificateServed())
	s.SetWhereKnown(out, v1.ConditionSurvivesZoneLoss, s.SurvivesZoneLoss())
	s.SetWhereKnown(out, v1.ConditionPrimaryPreferred, s.Preferred().Verdict)
	s.SetWhereKnown(out, v1.ConditionQueriesAnswered, s.queriesAnswered())
	s.SetWhereKnown(out, v1.ConditionDrillsPassed, s.DrillsPassed())
	s.SetWhereKnown(out, v1.ConditionPoolerReady, s.PoolerReady())
}

// setArchiveConditions sets the conditions about the archive. Scheduled is there only with a schedule, RetentionApplied
// when there is something to keep, KeysHeld with encryption, Intact when the archive was read again.
func (s *scope) setArchiveConditions(out *v1.SampleDBStatus) {
	meta.SetStatusCondition(&out.Conditions, s.Condition(v1.ConditionArchiving, s.Archiving()))
	s.SetWhereKnown(out, v1.ConditionRetentionApplied, s.RetentionApplied(out.Backup))
	s.SetWhereKnown(out, v1.ConditionKeysHeld, s.KeysHeld(out.Backup))
	s.SetWhereKnown(out, v1.ConditionIntact, archive.Intact(s.Scrub()))
	s.SetWhereKnown(out, v1.ConditionCopied, s.IsCopied(out.Backup))
	switch {
	case s.Backup == nil || s.Backup.Schedule == "" && s.Scheduled.Reason == "":
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionScheduled)
	case s.Scheduled.Reason != "": // else the reconcile did not get there
		meta.SetStatusCondition(&out.Conditions, s.Condition(v1.ConditionScheduled, s.Scheduled))
	}
}

// InstanceStatuses are those of the wanted instances, and beyond them of those whose Pod is still
// there or that still count.
func (s *scope) InstanceStatuses() []v1.InstanceStatus {
	ordinals := s.Ordinals()
	for _, old := range s.DB.Status.InstanceStatuses {
		if i, known := naming.Ordinal(old.Name); known && s.Votes(old.Name) {
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
	name := naming.Instance(s.DB.Name, ordinal)
	pod := s.Seen.Pods[ordinal]
	answer, known := s.Seen.Answers[name]
	out := v1.InstanceStatus{Name: name, Voter: s.Votes(name), Zone: s.ZoneOf(name), Volume: s.VolumeStatus(name),
		WAL: s.WalStatus(name)}
	if pod != nil {
		out.Version, out.ImageID = s.versionOf(name), desired.ImageID(pod, naming.ContainerPostgreSQL)
	}
	switch {
	case pod == nil && s.Stop.Down():
		out.Reason, out.Message = v1.ReasonStopped, "it is stopped"
	case pod == nil:
		out.Reason, out.Message = "NoPod", "it has no Pod"
	case known:
		out.Role, out.Ready = s.shownRole(answer), s.InstanceReady(name)
		out.Reason, out.Message = s.Said(answer)
		if answer.Late {
			out.Message += "; no client is sent here to read: it is later than service.readMaxLag"
		}
	case world.PodTrouble(pod) != nil:
		t := world.PodTrouble(pod)
		out.Reason, out.Message = t.Reason, t.Message
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
	if answer, known := s.Seen.Answers[name]; known && answer.ServerVersion != "" {
		return answer.ServerVersion
	}
	return s.InstanceBefore(name).Version
}

// shownRole is the role that an agent claims, but for a primary that another has
// followed and that has not heard of it yet.
func (s *scope) shownRole(answer protocol.Status) string {
	if answer.Role == protocol.RolePrimary && answer.Name != s.Leader() {
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
	s.ObserveRoots()
	s.PaceMachines()
	status := s.status()
	s.Reported = status
	s.Metrics.Observe(s.DB, status)
	s.Metrics.ObserveVolumes(s.DB, s.Rooms(desired.DataVolume))
	s.Metrics.ObserveKeptWAL(s.DB, s.Seen.Answers[s.Primary()].KeptWAL)
	status.Backup = archive.ArchiveNews(s.DB.Status, status, s.Now)
	if !equality.Semantic.DeepEqual(s.DB.Status, status) {
		changed := s.DB.DeepCopy()
		changed.Status = status
		write := freshness.Alone
		if s.DB.Status.Upgrade.HasSides() || status.Upgrade.HasSides() {
			write = freshness.Shared // a write that comes late must not turn a side that was opened since
		}
		if there, err := write(ctx, s.Client, s.DB, changed); err != nil || !there {
			return err
		}
		s.Statuses.Note(changed, changed.Status)
		s.LogChange(ctx, s.DB.Status, status)
		s.QueuedEvents = append(s.QueuedEvents, changes(s.DB.Status, status)...)
	}
	s.TellCancelledCommits() // once: what could not be written before would not be told again
	for _, e := range s.QueuedEvents {
		s.Events.Eventf(s.DB, nil, e.Kind, e.Reason, world.EventActionReported, "%s", e.Message)
	}
	return nil
}
