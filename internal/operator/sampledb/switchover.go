package sampledb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// request is what a decision about a switchover that a user asks for is made of.
type request struct {
	// to is the wanted primary, or naming.SwitchoverAny; "" when nobody asks.
	to string
	// from is the primary that was asked, as leader of fromTerm; "" before one was.
	from     string
	fromTerm uint64
	// primary takes writes in term, "" where none is known to.
	primary string
	term    uint64
	// members are the wanted instances.
	members []string
}

// The steps of a switchover. Each is the whole of what a reconcile does about it.
type step string

const (
	stepNone   step = "none"
	stepForget step = "forget" // nobody asks any more
	stepRefuse step = "refuse" // it can't be
	stepWait   step = "wait"   // nobody is there to be asked
	stepAsk    step = "ask"    // the primary, once more
	stepDone   step = "done"
)

// next is what to do about a request; for stepRefuse with a sentence for the user.
// A request is for one election: each costs a moment without writes, so one that
// another has won is not held again.
func (q request) next() (step, string) {
	switch {
	case q.to == "" && q.from == "":
		return stepNone, ""
	case q.to == "":
		return stepForget, ""
	case q.to != naming.SwitchoverAny && !slices.Contains(q.members, q.to):
		return stepRefuse, fmt.Sprintf("there is no instance %s: there are %s", q.to, strings.Join(q.members, ", "))
	case len(q.members) == 1:
		return stepRefuse, "there is only one instance, so no other can take over"
	case q.primary == "":
		return stepWait, ""
	case q.primary == q.to, q.to == naming.SwitchoverAny && q.from != "" && q.primary != q.from:
		return stepDone, ""
	case q.from != "" && q.term > q.fromTerm:
		return stepRefuse, fmt.Sprintf("%s handed over, but %s was elected; ask again", q.from, q.primary)
	}
	return stepAsk, ""
}

// request is what the SampleDB's annotations and the primary say of it.
func (s *handoverTopic) request() request {
	q := request{to: s.db.Annotations[naming.AnnotationSwitchover], primary: s.primary()}
	q.term = s.seen.answers[q.primary].Term
	q.from, q.fromTerm = parseAsked(s.db.Annotations[naming.AnnotationSwitchoverFrom])
	for _, m := range s.config.Members {
		q.members = append(q.members, m.Name)
	}
	return q
}

// formatAsked and parseAsked write and read the primary that was asked, with its term.
func formatAsked(primary string, term uint64) string { return fmt.Sprintf("%s/%d", primary, term) }

func parseAsked(text string) (primary string, term uint64) {
	primary, number, _ := strings.Cut(text, "/")
	term, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", 0 // somebody has broken it: it is asked anew
	}
	return primary, term
}

// asked says that a user's request for a switchover is there.
func (s *fleetFacts) asked() bool { return s.db.Annotations[naming.AnnotationSwitchover] != "" }

// applySwitchover does the next step of a switchover that a user asks for. Which
// primary was asked is written before it is, so that an operator that is started
// anew knows when another one has taken over.
func (s *handoverTopic) applySwitchover(ctx context.Context) error {
	q := s.request()
	what, sentence := q.next()
	switch what {
	case stepForget:
		return s.annotate(ctx, map[string]string{naming.AnnotationSwitchoverFrom: ""})
	case stepRefuse:
		return s.refuseSwitchover(ctx, sentence)
	case stepWait:
		s.moving = "waits for a primary that can hand over"
	case stepAsk:
		return s.pursue(ctx, q)
	case stepDone:
		if err := s.annotate(ctx, settled("")); err != nil {
			return err
		}
		message := fmt.Sprintf("from %s to %s", q.from, q.primary)
		if q.from == "" {
			message = q.primary + " is the primary already"
		}
		s.addEvent(eventSwitchover, message)
	case stepNone:
	}
	return nil
}

// pursue asks the primary to hand over, after having noted which one that is. With
// the first answer an agent may still tell the refusal of an earlier request.
func (s *handoverTopic) pursue(ctx context.Context, q request) error {
	first := q.from == ""
	if first {
		notes := map[string]string{
			naming.AnnotationSwitchoverFrom: formatAsked(q.primary, q.term), naming.AnnotationSwitchoverRefused: "",
		}
		if s.db.Spec.Primary != nil {
			notes[naming.AnnotationSwitchoverAt] = s.now.UTC().Format(time.RFC3339)
		}
		if err := s.annotate(ctx, notes); err != nil {
			return err
		}
	}
	to := q.to
	s.moving = fmt.Sprintf("%s is asked to hand over to %s", q.primary, to)
	if to == naming.SwitchoverAny {
		to = ""
		s.moving = q.primary + " is asked to hand over"
	}
	answer, err := s.askSwitchover(ctx, to, "a switchover was asked for")
	if err == nil && answer.SwitchoverError != "" && !first {
		return s.refuseSwitchover(ctx, answer.SwitchoverError)
	}
	return nil
}

// refuseSwitchover ends a request that can't be fulfilled and says why.
func (s *handoverTopic) refuseSwitchover(ctx context.Context, sentence string) error {
	if err := s.annotate(ctx, settled(sentence)); err != nil {
		return err
	}
	s.moving = ""
	s.addWarning(eventSwitchoverRefused, sentence)
	return nil
}

// settled are the annotations when a request is over.
func settled(refusal string) map[string]string {
	return map[string]string{
		naming.AnnotationSwitchover: "", naming.AnnotationSwitchoverFrom: "",
		naming.AnnotationSwitchoverRefused: refusal,
	}
}

// annotate sets annotations of the SampleDB, and removes those that are "". It
// fails where the SampleDB has changed since it was read: a request may be another one.
func (s *act) annotate(ctx context.Context, annotations map[string]string) error {
	changed := s.db.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		if value == "" {
			delete(changed.Annotations, key)
		} else {
			changed.Annotations[key] = value
		}
	}
	if maps.Equal(changed.Annotations, s.db.Annotations) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.db, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Patch(ctx, changed, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
		return fmt.Errorf("note how far a request is: %w", err)
	}
	changed.Spec = s.db.Spec // with the size in force, which the API server does not have
	s.db = changed
	return nil
}

// askSwitchover asks the primary's agent to hand over. One that does not answer
// may be doing just that: it is asked again, and the error is only for the log.
func (s *handoverTopic) askSwitchover(ctx context.Context, to, reason string) (protocol.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ordinal, _ := naming.Ordinal(s.primary())
	pod := s.seen.pods[ordinal]
	if pod == nil {
		return protocol.Status{}, fmt.Errorf("the primary %s has no Pod any more", s.primary())
	}
	answer, err := s.Agents.Switchover(ctx, s.db.UID, pod.Status.PodIP, s.config,
		protocol.Switchover{To: to, Reason: reason})
	if err != nil {
		log.FromContext(ctx).Info("the primary could not be asked to hand over; it will be asked again",
			"instance", pod.Name, "reason", err.Error())
	}
	return answer, err
}
