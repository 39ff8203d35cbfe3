package stop

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// ApplySleep finds out whether the database is to sleep (docs/stop.md, "Sleep"). Whether it does is on record before
// anything rests on it: the poolers are told to hold their clients a reconcile later.
func (s *stopTopic) ApplySleep(ctx context.Context) error {
	v := s.sleepView()
	d := decideSleep(v)
	s.SleepNext = d.next
	if d.sleeps != !v.asleep.IsZero() {
		log.FromContext(ctx).Info("whether the database sleeps", "sleeps", d.sleeps, "reason", d.reason,
			"says", d.message)
	}
	if !d.sleeps {
		return nil
	}
	s.StopPlan.wanted, s.StopPlan.asleep = true, s.asleep()
	if s.StopPlan.asleep == "" {
		s.StopPlan.asleep = s.Now.UTC().Format(time.RFC3339)
	}
	return nil
}

// asleep is since when it sleeps, or goes to sleep, "" where it does not.
func (s *stopTopic) asleep() string {
	if s.Stop == nil {
		return ""
	}
	return s.Stop.Asleep
}

// sleepView is what is known of a database that may sleep. Its poolers are asked only where that matters now.
func (s *stopTopic) sleepView() sleepView {
	v := sleepView{now: s.Now, after: s.DB.Spec.Sleep(), ordered: s.StopPlan.wanted || s.StopPlan.unread != ""}
	if s.Stop != nil {
		v.step = s.Stop.Step
		if s.Stop.Since != nil {
			v.since = s.Stop.Since.Time
		}
	}
	if at, err := time.Parse(time.RFC3339, s.asleep()); err == nil {
		v.asleep = at
	}
	if started, err := s.startedAt(); err == nil {
		v.started = started
	}
	v.ready = meta.IsStatusConditionTrue(s.DB.Status.Conditions, v1.ConditionReady)
	v.busy = s.BusyForStop()
	v.idle, v.unknown = s.idle()
	if v.after > 0 && !v.ordered && (v.step != "" || len(v.unknown) == 0 && v.idle >= v.after) {
		s.hearPoolers(&v)
	} else if s.Poolers != nil {
		s.Poolers.Waiting(s.DB.UID, nil, s.Config)
	}
	return v
}

// idle is for how long no client has done anything, and which instances and readers do not say so.
func (s *stopTopic) idle() (least time.Duration, unknown []string) {
	first := true
	see := func(name string, idle *time.Duration) {
		switch {
		case idle == nil:
			unknown = append(unknown, name)
		case first || *idle < least:
			least, first = *idle, false
		}
	}
	for _, m := range s.Config.Members {
		see(m.Name, s.Seen.Answers[m.Name].Idle)
	}
	for _, pod := range s.Seen.Readers.Pods {
		see(pod.Name, s.Seen.Readers.Answers[pod.Name].Idle)
	}
	return least, unknown
}

// hearPoolers is what the poolers say of their clients.
func (s *stopTopic) hearPoolers(v *sleepView) {
	var hosts []string
	for i := range s.Seen.PoolerPods {
		if pod := &s.Seen.PoolerPods[i]; listens(pod) {
			hosts = append(hosts, pod.Status.PodIP)
		}
	}
	var told map[string]protocol.PoolTells
	if s.Poolers != nil {
		told = s.Poolers.Waiting(s.DB.UID, hosts, s.Config)
	}
	v.held = true
	for i := range s.Seen.PoolerPods {
		pod := &s.Seen.PoolerPods[i]
		if pod.DeletionTimestamp != nil || pods.Ended(pod) {
			continue
		}
		v.poolers++
		tells, known := told[pod.Status.PodIP]
		if !known {
			v.unheard = append(v.unheard, pod.Name)
		}
		v.waiting, v.active = v.waiting+tells.Waiting, v.active+tells.Active
		v.held = v.held && tells.Held
	}
	v.held = v.held && v.poolers > 0
	s.held = v.held
}

// listens says that a pooler can be asked.
func listens(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !pods.Ended(pod) && pod.Status.PodIP != ""
}
