package stop

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/stop"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// stopTopic stops the database, has it sleep, and starts it again.
type stopTopic struct {
	base
	// StopPlan is whether the spec wants it to be stopped.
	StopPlan stopPlan
	// SleepNext is when it may go to sleep, zero where something tells; held says that all poolers are known to hold
	// their clients.
	SleepNext time.Time
	held      bool
}

// ApplyStop does the next step of a stop, or of the start after it (docs/stop.md). What it decides is on record before
// anything rests on it: the agents are told that no client is to be let in, and the Pods end, a reconcile later.
func (s *stopTopic) ApplyStop(ctx context.Context) error {
	v := s.stopView()
	s.noteStop(v, stop.Decide(v))
	if !s.Stop.Down() {
		return nil
	}
	s.Stopped = &world.Problem{Reason: v1.ReasonStopping, Message: s.StopSentence(), Wait: world.WaitGone}
	if s.Stop.Step == v1.StopStopped {
		s.Stopped.Reason = s.StopReason()
	}
	if !s.DB.Status.Stop.Down() || len(s.Seen.Pods) > 0 {
		return nil
	}
	if _, err := s.KeepJob(ctx, naming.ComponentImage, ""); err != nil {
		return err
	}
	return s.Others.StopArchive(ctx)
}

// stopView is what is known of a stop.
func (s *stopTopic) stopView() stop.View {
	v := stop.View{
		Now: s.Now, Wanted: s.StopPlan.wanted, Sleeps: s.StopPlan.asleep != "", Held: s.held,
		Until: s.StopPlan.until, Deleted: s.DB.DeletionTimestamp != nil,
		Busy: s.BusyForStop(), Data: s.Config.SystemIdentifier != "",
		Pods: len(s.Seen.Pods) + len(s.Seen.ArchivePods), Primary: s.Primary(),
		AllClosed: s.Primary() != "" && s.AllClosed(), Archived: s.Backup == nil,
	}
	if old := s.DB.Status.Stop; old != nil {
		v.Step, v.Proves, v.Proved = steps.Phase(old.Step), old.Primary, old.LSN
		if old.Since != nil {
			v.Since = old.Since.Time
		}
	}
	switch {
	case v.Step == "":
		v.Pods = len(s.Seen.Pods)
	case !v.Sleeps:
		v.Pods += len(s.Seen.PoolerPods)
	}
	answer := s.Seen.Answers[v.Primary]
	v.Closed = s.Config.Closed && answer.Closed && answer.ConfigRevision == s.Config.Revision
	if v.Closed {
		v.End = answer.End
	}
	s.viewProof(&v)
	return v
}

// viewProof is who has all up to the end.
func (s *stopTopic) viewProof(v *stop.View) {
	end, err := wal.ParseLSN(v.End)
	known := err == nil && v.End != ""
	for _, m := range s.Config.Members {
		answer := s.Seen.Answers[m.Name]
		has, err := wal.ParseLSN(answer.LSN)
		if m.Name != v.Primary && (!known || err != nil || answer.LSN == "" || has < end) {
			v.Behind = append(v.Behind, m.Name)
		}
	}
	if s.Backup == nil {
		return
	}
	state := s.ArchiveState()
	v.Archived = known && state != nil && s.OpenGap() == "" && archivedUpTo(state, end)
	switch {
	case !known:
		v.Archive = "the agent of the primary does not say where its WAL ends"
	case state == nil:
		v.Archive = "the primary does not say how far the archive goes"
	case state.Error != "":
		v.Archive = "the archive does not take WAL now: " + state.Error
	case s.OpenGap() != "":
		v.Archive = "WAL " + s.OpenGap() + " is in no archive"
	default:
		v.Archive = fmt.Sprintf("the archive goes up to %s, and the WAL to %s", state.LSN, v.End)
	}
}

// archivedUpTo says that the store of an archive has confirmed all WAL up to a position.
func archivedUpTo(state *protocol.ArchiveStatus, end wal.LSN) bool {
	has, err := wal.ParseLSN(state.LSN)
	return err == nil && state.LSN != "" && has >= end
}

// noteStop says in the status how far a stop is.
func (s *stopTopic) noteStop(v stop.View, d steps.Decision) {
	old := s.Stop
	if d.Phase == "" {
		if d.Why == stop.WhyStarted && !v.Deleted {
			s.AddEvent(s.startEvent(), fmt.Sprintf("%s takes writes, %.0f s after the start was asked for", v.Primary,
				s.Now.Sub(v.Since).Seconds()))
		}
		s.Stop = nil
		return
	}
	next := &v1.StopStatus{}
	if old != nil {
		next = old.DeepCopy()
	}
	next.Step, next.Message, next.Until = string(d.Phase), d.Says, s.StopPlan.status()
	next.Asleep = s.sleepsSince(d)
	if s.StopPlan.unread != "" {
		next.Message += "; " + s.StopPlan.unread
	}
	if old == nil || d.Phase == v1.StopClosing && old.Step != v1.StopClosing {
		next.Instances = max(next.Instances, int32(s.Needed())) //nolint:gosec // nine at most
		next.Primary, next.LSN, next.Archive, next.ArchivedLSN, next.Behind = "", "", "", "", nil
	}
	s.noteProof(next, v, d)
	if old == nil || old.Step != next.Step || next.Step == v1.StopProving && gotOn(old, next) {
		at := metav1.NewTime(s.Now).Rfc3339Copy()
		next.Since = &at
	}
	s.Stop = next
	if next.Step == v1.StopStopped && (old == nil || old.Step != v1.StopStopped) {
		s.tellStopped(next)
	}
}

// sleepsSince is since when it sleeps. While it starts, it is still known that it did.
func (s *stopTopic) sleepsSince(d steps.Decision) string {
	if d.Phase == v1.StopStarting {
		return s.asleep()
	}
	return s.StopPlan.asleep
}

// noteProof says how far standbys and the archive are; when the Pods end, that is what was proved.
func (s *stopTopic) noteProof(next *v1.StopStatus, v stop.View, d steps.Decision) {
	switch {
	case d.Phase == v1.StopStarting:
		next.LSN, next.ArchivedLSN, next.Archive, next.Behind = "", "", "", nil // it does not hold any more
		return
	case v.Step == v1.StopProving || d.Phase == v1.StopProving:
	case next.Down() && next.Archive == "" && v.Data:
		next.Archive = s.unproved()
		return
	default:
		return
	}
	if v.Primary != "" && v.Closed {
		next.Primary, next.LSN, next.Behind = v.Primary, v.End, v.Behind
		if state := s.ArchiveState(); state != nil && state.LSN != "" {
			next.ArchivedLSN = state.LSN
		}
	}
	switch {
	case s.Backup == nil:
		next.Archive = v1.StopArchiveNone
	case d.Why == stop.WhyComplete, v.Archived && v.Closed:
		next.Archive = v1.StopArchiveComplete
	case next.LSN == "":
		next.Archive = v1.StopArchiveUnknown
	default:
		next.Archive = v1.StopArchiveIncomplete
	}
}

// unproved is what is known of the archive of a database without an end.
func (s *stopTopic) unproved() v1.StopArchive {
	if s.Backup == nil {
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
	reason := world.EventStopped
	if stop.Sleeps() {
		reason = world.EventSleeping
	}
	s.QueuedEvents = append(s.QueuedEvents, world.Event{Kind: kind, Reason: reason, Message: s.StopSentence()})
}

// startEvent is the event of a start.
func (s *stopTopic) startEvent() string {
	if s.asleep() != "" {
		return world.EventWoken
	}
	return world.EventStarted
}

// StopSentence says how far a stop is, and what is proved.
func (s *stopTopic) StopSentence() string {
	if s.Stop.Archive == "" || s.Stop.Step == v1.StopProving {
		return s.Stop.Message
	}
	return s.Stop.Message + "; " + s.StopProof()
}

// StopReason is the reason of Ready and Available for the step of a stop.
func (s *stopTopic) StopReason() string {
	switch s.Stop.Step {
	case v1.StopStopped:
		if s.Stop.Sleeps() {
			return v1.ReasonSleeping
		}
		return v1.ReasonStopped
	case v1.StopStarting:
		return v1.ReasonStarting
	}
	return v1.ReasonStopping
}

// NotStopped fails while the database is stopped, is being stopped, or is to be.
func (s *stopTopic) NotStopped() *world.Verdict {
	if !s.HoldsWork() {
		return nil
	}
	return &world.Verdict{Reason: s.StopReason(), Message: s.StopSentence()}
}

// AsBefore is a condition as it was when the database was stopped.
func (s *stopTopic) AsBefore(kind string, now world.Verdict) world.Verdict {
	if last := world.Condition(s.DB.Status, kind); s.Stop.Down() && last != nil {
		return world.Verdict{Status: last.Status, Reason: last.Reason, Message: last.Message}
	}
	return now
}
