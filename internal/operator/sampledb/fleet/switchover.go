package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
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
	q := request{to: s.Asked(world.RequestSwitchover), primary: s.Primary()}
	q.term = s.Seen.Answers[q.primary].Term
	q.from, q.fromTerm = parseAsked(s.DB.Annotations[naming.AnnotationSwitchoverFrom])
	for _, m := range s.Config.Members {
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

// ApplySwitchover does the next step of a switchover that a user asks for. Which
// primary was asked is written before it is, so that an operator that is started
// anew knows when another one has taken over.
func (s *handoverTopic) ApplySwitchover(ctx context.Context) error {
	q := s.request()
	what, sentence := q.next()
	switch what {
	case stepForget:
		return s.Record(ctx, map[string]string{naming.AnnotationSwitchoverFrom: ""})
	case stepRefuse:
		return s.refuseSwitchover(ctx, sentence)
	case stepWait:
		s.Moving = "waits for a primary that can hand over"
	case stepAsk:
		return s.pursue(ctx, q)
	case stepDone:
		if err := s.settle(ctx, ""); err != nil {
			return err
		}
		message := fmt.Sprintf("from %s to %s", q.from, q.primary)
		if q.from == "" {
			message = q.primary + " is the primary already"
		}
		s.AddEvent(world.EventSwitchover, message)
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
		if s.DB.Spec.Primary != nil {
			notes[naming.AnnotationSwitchoverAt] = s.Now.UTC().Format(time.RFC3339)
		}
		if err := s.Record(ctx, notes); err != nil {
			return err
		}
	}
	to := q.to
	s.Moving = fmt.Sprintf("%s is asked to hand over to %s", q.primary, to)
	if to == naming.SwitchoverAny {
		to = ""
		s.Moving = q.primary + " is asked to hand over"
	}
	answer, err := s.askSwitchover(ctx, to, "a switchover was asked for")
	if err == nil && answer.SwitchoverError != "" && !first {
		return s.refuseSwitchover(ctx, answer.SwitchoverError)
	}
	return nil
}

// refuseSwitchover ends a request that can't be fulfilled and says why.
func (s *handoverTopic) refuseSwitchover(ctx context.Context, sentence string) error {
	if err := s.settle(ctx, sentence); err != nil {
		return err
	}
	s.Moving = ""
	s.AddWarning(world.EventSwitchoverRefused, sentence)
	return nil
}

// settle takes a request away that is over.
func (s *handoverTopic) settle(ctx context.Context, refusal string) error {
	return s.Record(ctx, map[string]string{
		naming.AnnotationSwitchoverFrom: "", naming.AnnotationSwitchoverRefused: refusal,
	}, world.RequestSwitchover)
}

// askSwitchover asks the primary's agent to hand over. One that does not answer
// may be doing just that: it is asked again, and the error is only for the log.
func (s *handoverTopic) askSwitchover(ctx context.Context, to, reason string) (protocol.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, world.Patience)
	defer cancel()
	ordinal, _ := naming.Ordinal(s.Primary())
	pod := s.Seen.Pods[ordinal]
	if pod == nil {
		return protocol.Status{}, fmt.Errorf("the primary %s has no Pod any more", s.Primary())
	}
	answer, err := s.Agents.Switchover(ctx, s.DB.UID, pod.Status.PodIP, s.Config,
		protocol.Switchover{To: to, Reason: reason})
	if err != nil {
		log.FromContext(ctx).Info("the primary could not be asked to hand over; it will be asked again",
			"instance", pod.Name, "reason", err.Error())
	}
	return answer, err
}
