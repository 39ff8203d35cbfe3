package stop

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/window"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// StopPlan is whether the spec wants the database to be stopped.
type stopPlan struct {
	wanted bool
	// until is when the windows end because of which it is, zero where spec.stopped says so; next is when that changes
	// by itself, zero for never.
	until, Next time.Time
	// asleep is since when it sleeps, or goes to sleep, "" where something else wants it to be stopped.
	asleep string
	// unread names the part of the spec that can't be read, "" for nothing: then all stays as it is.
	unread string
}

// status is until when, for the status, nil where that is not known.
func (p stopPlan) status() *metav1.Time {
	if p.until.IsZero() {
		return nil
	}
	until := metav1.NewTime(p.until)
	return &until
}

// ApplyStopWindows finds out whether the database is to be stopped. Where that can't be read, all stays as it is.
func (s *stopTopic) ApplyStopWindows(_ context.Context) error {
	plan, err := s.planStop()
	s.StopPlan = plan
	if err != nil {
		s.StopPlan.asleep = s.asleep()
		s.StopPlan.wanted, s.StopPlan.unread = s.Stop != nil && s.Stop.Step != v1.StopStarting, err.Error()
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	return nil
}

// planStop says whether the database is to be stopped now: spec.stopped says so, or one of spec.stopWindows is open.
// An error is of the spec, and for the user.
func (s *stopTopic) planStop() (stopPlan, error) {
	if s.DB.Spec.Stopped {
		return stopPlan{wanted: true}, nil
	}
	var windows []window.Window
	for i, w := range s.DB.Spec.StopWindows {
		parsed, err := desired.ParseWindow(w)
		if err != nil {
			return stopPlan{}, fmt.Errorf("spec.stopWindows[%d].%w", i, err)
		}
		windows = append(windows, parsed)
	}
	after, err := s.startedAt()
	if err != nil {
		return stopPlan{}, err
	}
	if until, open := window.Until(windows, s.Now, after); open {
		return stopPlan{wanted: true, until: until, Next: until}, nil
	}
	return stopPlan{Next: window.NextOf(windows, s.Now)}, nil
}

// startedAt is the moment before which an opening of a window does not count: somebody has created or started the
// database after it.
func (s *stopTopic) startedAt() (time.Time, error) {
	created := s.DB.CreationTimestamp.Time
	text := s.Asked(world.RequestStarted)
	if text == "" {
		return created, nil
	}
	started, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("the annotation %s is %q: it must be a time such as %s, or go",
			world.RequestStarted, text, s.Now.UTC().Format(time.RFC3339))
	}
	if started.Before(created) {
		return created, nil
	}
	return started, nil
}
