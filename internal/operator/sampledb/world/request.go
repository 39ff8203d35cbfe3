package world

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// Request is what a person asks of a SampleDB: the annotation by which. What its value may be is said there, in package
// naming.
type Request string

// The requests: where it is noted that one is begun, and where it is said how it went. Those that are done once are
// taken away by Settle or Record: with the write that notes that they are begun, or when they are done or refused.
const (
	// In an annotation, with the primary that is asked; in an event, a refusal in an annotation too.
	RequestSwitchover Request = naming.AnnotationSwitchover
	// In status.restart, both.
	RequestRestart Request = naming.AnnotationRestart
	// On each Pod whose agent is given the program; in the condition AgentsCurrent.
	RequestReplaceAgents Request = naming.AnnotationReplaceAgents
	// In an annotation, by the write that takes the request away; in a condition.
	RequestRotatePassword  Request = naming.AnnotationRotatePassword
	RequestRotateAuthority Request = naming.AnnotationRotateAuthority
	// By a Job; in status.image.
	RequestLookForUpdates Request = naming.AnnotationLookForUpdates
	// In status.update or status.upgrade, both.
	RequestUpdate Request = naming.AnnotationUpdate
	// By a Job; in status.finish.
	RequestReindex Request = naming.AnnotationReindex
	// By a Job; in status.rehearsal.
	RequestRehearse Request = naming.AnnotationRehearse
	// In status.upgrade, both.
	RequestUpgradeBack   Request = naming.AnnotationUpgradeBack
	RequestAcceptUpgrade Request = naming.AnnotationAcceptUpgrade
	// These stay, and say what is so from then on. Package desired decides what the last two mean.
	RequestStarted     Request = naming.AnnotationStarted
	RequestSide        Request = naming.AnnotationSide
	RequestFaultDrills Request = naming.AnnotationFaultDrills
)

// Requests are all of them: a change of one wakes a reconcile.
var Requests = []Request{
	RequestSwitchover, RequestRestart, RequestReplaceAgents, RequestRotatePassword, RequestRotateAuthority,
	RequestLookForUpdates, RequestUpdate, RequestReindex, RequestRehearse, RequestUpgradeBack, RequestAcceptUpgrade,
	RequestStarted, RequestSide, RequestFaultDrills,
}

// Asked is the value of a request, "" where nobody asks.
func (s *Core) Asked(r Request) string { return s.DB.Annotations[string(r)] }

// Asks says that a request is there.
func (s *Core) Asks(r Request) bool { return s.Asked(r) != "" }

// Settle takes requests away that are done, or refused.
func (s *Act) Settle(ctx context.Context, requests ...Request) error {
	return s.Record(ctx, map[string]string{}, requests...)
}

// AskSwitchover asks for a switchover as a user would: so it goes on, ends, or is refused in the same way.
func (s *Act) AskSwitchover(ctx context.Context, to, why string) error {
	err := s.Record(ctx, map[string]string{
		string(RequestSwitchover): to, naming.AnnotationSwitchoverAt: s.Now.UTC().Format(time.RFC3339),
		naming.AnnotationSwitchoverRefused: "",
	})
	if err != nil {
		return fmt.Errorf("ask for a switchover %s: %w", why, err)
	}
	return nil
}

// Record sets annotations of the SampleDB, removes those that are "", and with the same write takes requests away. It
// fails where the SampleDB has changed since it was read: a request may be another one.
func (s *Act) Record(ctx context.Context, annotations map[string]string, settled ...Request) error {
	changed := s.DB.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	for _, r := range settled {
		annotations[string(r)] = ""
	}
	for key, value := range annotations {
		if value == "" {
			delete(changed.Annotations, key)
		} else {
			changed.Annotations[key] = value
		}
	}
	if maps.Equal(changed.Annotations, s.DB.Annotations) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.DB, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Patch(ctx, changed, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
		return fmt.Errorf("note how far a request is: %w", err)
	}
	// A cache that still has a request which is settled, but no more the Job that has fulfilled it, begins it anew.
	s.Statuses.Note(changed, changed.Status)
	changed.Spec = s.DB.Spec // with the size in force, which the API server does not have
	s.DB = changed
	return nil
}
