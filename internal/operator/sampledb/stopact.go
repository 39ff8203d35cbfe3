package sampledb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// stopTopic stops the database, has it sleep, and starts it again.
type stopTopic struct {
	stopBase
	// stopPlan is whether the spec wants it to be stopped.
	stopPlan stopPlan
	// sleepNext is when it may go to sleep, zero where something tells; held says that all poolers are known to hold
	// their clients.
	sleepNext time.Time
	held      bool
}

// applyStop does the next step of a stop, or of the start after it (docs/stop.md). What it decides is on record before
// anything rests on it: the agents are told that no client is to be let in, and the Pods end, a reconcile later.
func (s *stopTopic) applyStop(ctx context.Context) error {
	v := s.stopView()
	s.noteStop(v, decideStop(v))
	if !s.stop.Down() {
		return nil
	}
	s.stopped = &problem{v1.ReasonStopping, s.stopSentence(), waitGone}
	if s.stop.Step == v1.StopStopped {
		s.stopped.reason = s.stopReason()
	}
	if !s.db.Status.Stop.Down() || len(s.seen.pods) > 0 {
		return nil
	}
	if _, err := s.keepJob(ctx, naming.ComponentImage, ""); err != nil {
		return err
	}
	return s.others.stopArchive(ctx)
}

// stopView is what is known of a stop.
func (s *stopTopic) stopView() stopView {
	v := stopView{
		now: s.now, wanted: s.stopPlan.wanted, sleeps: s.stopPlan.asleep != "", held: s.held,
		until: s.stopPlan.until, deleted: s.db.DeletionTimestamp != nil,
		busy: s.busyForStop(), data: s.config.SystemIdentifier != "",
		pods: len(s.seen.pods) + s.seen.otherPods, primary: s.primary(),
		allClosed: s.primary() != "" && s.allClosed(), archived: s.backup == nil,
	}
	if old := s.db.Status.Stop; old != nil {
		v.step, v.proves, v.proved = old.Step, old.Primary, old.LSN
		if old.Since != nil {
			v.since = old.Since.Time
		}
	}
	switch {
	case v.step == "":
		v.pods = len(s.seen.pods)
	case !v.sleeps:
		v.pods += len(s.seen.poolerPods)
	}
	answer := s.seen.answers[v.primary]
	v.closed = s.config.Closed && answer.Closed && answer.ConfigRevision == s.config.Revision
	if v.closed {
		v.end = answer.End
	}
	s.viewProof(&v)
	return v
}

// viewProof is who has all up to the end.
func (s *stopTopic) viewProof(v *stopView) {
	end, err := wal.ParseLSN(v.end)
	known := err == nil && v.end != ""
	for _, m := range s.config.Members {
		answer := s.seen.answers[m.Name]
		has, err := wal.ParseLSN(answer.LSN)
		if m.Name != v.primary && (!known || err != nil || answer.LSN == "" || has < end) {
			v.behind = append(v.behind, m.Name)
		}
	}
	if s.backup == nil {
		return
	}
	state := s.archiveState()
	v.archived = known && state != nil && s.openGap() == "" && archivedUpTo(state, end)
	switch {
	case !known:
		v.archive = "the agent of the primary does not say where its WAL ends"
	case state == nil:
		v.archive = "the primary does not say how far the archive goes"
	case state.Error != "":
		v.archive = "the archive does not take WAL now: " + state.Error
	case s.openGap() != "":
		v.archive = "WAL " + s.openGap() + " is in no archive"
	default:
		v.archive = fmt.Sprintf("the archive goes up to %s, and the WAL to %s", state.LSN, v.end)
	}
}

// archivedUpTo says that the store of an archive has confirmed all WAL up to a position.
func archivedUpTo(state *protocol.ArchiveStatus, end wal.LSN) bool {
	has, err := wal.ParseLSN(state.LSN)
	return err == nil && state.LSN != "" && has >= end
}

// busyForStop is what is under way that a stop would cut off, "" for nothing. An upgrade that has not sent clients away
// goes back to its beginning, and what pulls images is made anew.
func (s *stopFacts) busyForStop() string {
	if s.restoreBegun() {
		return "a restore"
	}
	if s.upgrade.Closed() {
		return "the upgrade to PostgreSQL " + fmt.Sprint(s.upgrade.To)
	}
	if desired.TwoSides(s.db) {
		return "the blue/green upgrade to PostgreSQL " + fmt.Sprint(s.db.Status.Upgrade.To)
	}
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		if jobs.Of(job, nil).Ended() || job.DeletionTimestamp != nil {
			continue
		}
		switch component := job.Labels[naming.LabelComponent]; {
		case component == naming.ComponentUpgrade, component == naming.ComponentImage:
		case component == naming.ComponentRehearse && s.upgrade != nil && s.upgrade.Step == v1.UpgradeRehearsing:
		default:
			return "Job " + job.Name
		}
	}
	return ""
}

// noteStop says in the status how far a stop is.
func (s *stopTopic) noteStop(v stopView, d stopDecision) {
	old := s.stop
	if d.step == "" {
		if d.reason == stopStarted && !v.deleted {
			s.addEvent(s.startEvent(), fmt.Sprintf("%s takes writes, %.0f s after the start was asked for", v.primary,
				s.now.Sub(v.since).Seconds()))
		}
		s.stop = nil
		return
	}
	next := &v1.StopStatus{}
	if old != nil {
		next = old.DeepCopy()
	}
	next.Step, next.Message, next.Until = d.step, d.message, s.stopPlan.status()
	next.Asleep = s.sleepsSince(d)
	if s.stopPlan.unread != "" {
		next.Message += "; " + s.stopPlan.unread
	}
	if old == nil || d.step == v1.StopClosing && old.Step != v1.StopClosing {
		next.Instances = max(next.Instances, int32(s.needed())) //nolint:gosec // nine at most
		next.Primary, next.LSN, next.Archive, next.ArchivedLSN, next.Behind = "", "", "", "", nil
	}
	s.noteProof(next, v, d)
	if old == nil || old.Step != next.Step || next.Step == v1.StopProving && gotOn(old, next) {
		at := metav1.NewTime(s.now).Rfc3339Copy()
		next.Since = &at
	}
	s.stop = next
	if next.Step == v1.StopStopped && (old == nil || old.Step != v1.StopStopped) {
		s.tellStopped(next)
	}
}

// sleepsSince is since when it sleeps. While it starts, it is still known that it did.
func (s *stopTopic) sleepsSince(d stopDecision) string {
	if d.step == v1.StopStarting {
		return s.asleep()
	}
	return s.stopPlan.asleep
}

// noteProof says how far standbys and the archive are; when the Pods end, that is what was proved.
func (s *stopTopic) noteProof(next *v1.StopStatus, v stopView, d stopDecision) {
	switch {
	case d.step == v1.StopStarting:
		next.LSN, next.ArchivedLSN, next.Archive, next.Behind = "", "", "", nil // it does not hold any more
		return
	case v.step == v1.StopProving || d.step == v1.StopProving:
	case next.Down() && next.Archive == "" && v.data:
		next.Archive = s.unproved()
		return
	default:
		return
	}
	if v.primary != "" && v.closed {
		next.Primary, next.LSN, next.Behind = v.primary, v.end, v.behind
		if state := s.archiveState(); state != nil && state.LSN != "" {
			next.ArchivedLSN = state.LSN
		}
	}
	switch {
	case s.backup == nil:
		next.Archive = v1.StopArchiveNone
	case d.reason == stopComplete, v.archived && v.closed:
		next.Archive = v1.StopArchiveComplete
	case next.LSN == "":
		next.Archive = v1.StopArchiveUnknown
	default:
		next.Archive = v1.StopArchiveIncomplete
	}
}

// unproved is what is known of the archive of a database without an end.
func (s *stopTopic) unproved() v1.StopArchive {
	if s.backup == nil {
		return v1.StopArchiveNone
	}
	return v1.StopArchiveUnknown
}

// gotOn says that something has come further towards a proof. What a server writes by itself goes to the archive all
// the time, and proves nothing more.
func gotOn(old, next *v1.StopStatus) bool {
	end, err := wal.ParseLSN(next.LSN)
	has, unknown := wal.ParseLSN(next.ArchivedLSN)
	archives := old.ArchivedLSN != next.ArchivedLSN && err == nil && unknown == nil && has < end
	return old.LSN != next.LSN || archives || len(next.Behind) < len(old.Behind)
}

// tellStopped tells that nothing runs any more.
func (s *stopTopic) tellStopped(stop *v1.StopStatus) {
	kind := corev1.EventTypeNormal
	if stop.Archive == v1.StopArchiveIncomplete || stop.Archive == v1.StopArchiveUnknown {
		kind = corev1.EventTypeWarning
	}
	reason := eventStopped
	if stop.Sleeps() {
		reason = eventSleeping
	}
	s.events = append(s.events, event{kind, reason, s.stopSentence()})
}

// startEvent is the event of a start.
func (s *stopTopic) startEvent() string {
	if s.asleep() != "" {
		return eventWoken
	}
	return eventStarted
}

// stopSentence says how far a stop is, and what is proved.
func (s *stopTopic) stopSentence() string {
	if s.stop.Archive == "" || s.stop.Step == v1.StopProving {
		return s.stop.Message
	}
	return s.stop.Message + "; " + s.stopProof()
}

// stopProof says what of a stopped database the archive has.
func (s *stopFacts) stopProof() string {
	stop := s.stop
	switch stop.Archive {
	case v1.StopArchiveComplete:
		return fmt.Sprintf("the archive is complete: it has all WAL up to %s, where the last client had gone", stop.LSN)
	case v1.StopArchiveIncomplete:
		if stop.ArchivedLSN == "" {
			return fmt.Sprintf("the archive is not known to have the WAL up to %s, which is on the volumes", stop.LSN)
		}
		return fmt.Sprintf("the archive goes up to %s, and the WAL to %s: the rest is on the volumes",
			stop.ArchivedLSN, stop.LSN)
	case v1.StopArchiveNone:
		return "there is no archive: all data is on the volumes"
	case v1.StopArchiveUnknown:
	}
	return "it is not known whether the archive has all WAL, which is on the volumes"
}

// stopReason is the reason of Ready and Available for the step of a stop.
func (s *stopTopic) stopReason() string {
	switch s.stop.Step {
	case v1.StopStopped:
		if s.stop.Sleeps() {
			return v1.ReasonSleeping
		}
		return v1.ReasonStopped
	case v1.StopStarting:
		return v1.ReasonStarting
	}
	return v1.ReasonStopping
}

// notStopped fails while the database is stopped, is being stopped, or is to be.
func (s *stopTopic) notStopped() *verdict {
	if !s.holdsWork() {
		return nil
	}
	return &verdict{"", s.stopReason(), s.stopSentence()}
}

// archivingStopped is the condition Archiving of a database that is stopped.
func (s *stopFacts) archivingStopped() verdict {
	switch s.stop.Archive {
	case v1.StopArchiveComplete:
		return yes(v1.ReasonStopped, s.stopProof())
	case "":
		return no(v1.ReasonStopped, "the database was never started: the archive begins when it is")
	case v1.StopArchiveIncomplete, v1.StopArchiveUnknown, v1.StopArchiveNone:
	}
	return no(v1.ReasonArchiveIncomplete, s.stopProof())
}

// notTold is a condition of which only running instances can tell, while none runs.
func notTold() verdict {
	return verdict{metav1.ConditionUnknown, v1.ReasonStopped, "the database is stopped; it is known after the start"}
}

// asBefore is a condition as it was when the database was stopped.
func (s *stopTopic) asBefore(kind string, now verdict) verdict {
	if last := condition(s.db.Status, kind); s.stop.Down() && last != nil {
		return verdict{last.Status, last.Reason, last.Message}
	}
	return now
}

// holdsWork says that nothing is to be begun that a stop would have to wait for. While it waits for a blue/green
// upgrade all goes on, because the upgrade does not end otherwise.
func (s *stopFacts) holdsWork() bool {
	return s.stop != nil && s.stop.Step != v1.StopStarting &&
		(s.stop.Step != v1.StopWaiting || !desired.TwoSides(s.db))
}
