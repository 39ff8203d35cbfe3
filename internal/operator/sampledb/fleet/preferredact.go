package fleet

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/wal"
)

// handoverTopic hands over: to the instance that a user asks for, or to a preferred one.
type handoverTopic struct {
	base
	// PreferredNext is when a hand-over to a preferred instance may begin, zero where something tells.
	PreferredNext time.Time
}

// preference is what the scope knows of it.
func (s *handoverTopic) preference() preference {
	p := preference{
		now: s.Now, policy: s.DB.Spec.Primary.HandOver, primary: s.Primary(),
		asked: s.Asked(world.RequestSwitchover), unready: s.notWell(), busy: s.BusyForHandOver(),
		ready: s.Now, refused: s.DB.Annotations[naming.AnnotationSwitchoverRefused],
	}
	if was := world.Condition(s.DB.Status, v1.ConditionReady); was != nil && was.Status == metav1.ConditionTrue {
		p.ready = was.LastTransitionTime.Time
	}
	if last, err := time.Parse(time.RFC3339, s.DB.Annotations[naming.AnnotationSwitchoverAt]); err == nil {
		p.last = last
	}
	for ordinal, is := range s.Fleet().Instances {
		c := s.Candidate(ordinal)
		c.Unable, c.Behind = unable(is), s.behindPrimary(c.Name)
		p.candidates = append(p.candidates, c)
	}
	if p.policy == v1.HandOverInWindow {
		permission, err := s.Permission(world.RequestUpdate)
		if p.window = permission.Window; err != nil || p.window == nil {
			p.unready = cmp.Or(p.unready, "spec.update.window can't be read")
		}
	}
	return p
}

// unable is why an instance can't take over, "" where it can.
func unable(i world.Instance) string {
	switch {
	case !i.Ready:
		return "it is not ready"
	case i.Joining:
		return "it does not count for commits and votes yet"
	}
	return ""
}

// behindPrimary is how much WAL an instance has less than the primary, as both have said last, in bytes; negative where
// that is not known.
func (s *handoverTopic) behindPrimary(name string) int64 {
	end, has := s.Seen.Answers[s.Primary()].LSN, s.Seen.Answers[name].LSN
	to, err := wal.ParseLSN(end)
	from, unread := wal.ParseLSN(has)
	if end == "" || has == "" || err != nil || unread != nil {
		return -1
	}
	if from >= to { // it was asked later
		return 0
	}
	return int64(to - from) //nolint:gosec // nobody is 8 EiB behind
}

// notWell is why the database is not as it should be, "" where it is: it is ready, and a commit is on as many disks as
// the spec wants.
func (s *handoverTopic) notWell() string {
	if v := s.Others.Readiness(); v.Status != metav1.ConditionTrue {
		return v.Reason
	}
	if v := s.Durable(); v.Status != metav1.ConditionTrue && v.Reason != v1.ReasonAsynchronous {
		return v.Reason
	}
	return s.Moving
}

// Preferred is the decision about a hand-over. There is none of a lone instance, nor where all are alike.
func (s *handoverTopic) Preferred() preferredStep {
	if s.DB.Spec.Primary == nil || s.Instances() < 2 {
		return preferredStep{}
	}
	if s.Stop.Down() {
		return preferredStep{Verdict: world.NotTold()}
	}
	return decidePreferred(s.preference())
}

// ApplyPreferred asks for a switchover to a preferred instance when its time has come.
func (s *handoverTopic) ApplyPreferred(ctx context.Context) error {
	d := s.Preferred()
	s.PreferredNext = d.at
	if d.target == "" {
		return nil
	}
	if err := s.AskSwitchover(ctx, d.target, "to a preferred instance"); err != nil {
		return err
	}
	s.AddEvent(world.EventPreferred, d.Message)
	return nil
}
