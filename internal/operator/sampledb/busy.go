package sampledb

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
)

// machinesTopic says whether the instances' machines are busy, and whether elections are in vain.
type machinesTopic struct {
	fleetBase
	// machines is the condition OnTime; nothing where that is not so.
	machines verdict
	// slack is the longest that is told, leaderlessFor for how long no leader has answered.
	slack, leaderlessFor time.Duration
}

// onTime says whether things come on time on the machines of the instances, by the word of their agents (docs/busy.md,
// "A machine that is busy"). While one that is not known to be late is not heard, the condition stays as it was. There
// is none where no agent says so: those of earlier releases don't.
func (s *machinesTopic) onTime() verdict {
	var late, unheard []string
	said := 0
	s.slack = 0
	for _, m := range s.config.Members {
		answer, heard := s.seen.answers[m.Name]
		switch slack := answer.Slack; {
		case !heard:
			unheard = append(unheard, m.Name)
		case slack == nil: // of an earlier release
		case *slack > 0:
			late, s.slack = append(late, m.Name), max(s.slack, *slack)
			said++
		default:
			said++
		}
	}
	switch {
	case len(late) > 0:
		return no(v1.ReasonMachineBusy, busySentence(late, s.slack, s.instances() == 1))
	case s.stop.Down() || said == 0 && len(unheard) == 0:
		return verdict{}
	case said < len(s.config.Members):
		return s.stillLate(unheard)
	}
	return yes(v1.ReasonOnTime, "nothing comes late on the machines of the instances")
}

// stillLate is the condition as it was, while some are not heard; nothing where it was about others alone, which are on
// time now.
func (s *machinesTopic) stillLate(unheard []string) verdict {
	last := s.lastVerdict(v1.ConditionOnTime)
	about := func(name string) bool {
		return strings.Contains(last.message, name+" ") || strings.Contains(last.message, name+",")
	}
	if last.status == metav1.ConditionFalse && !slices.ContainsFunc(unheard, about) {
		return verdict{}
	}
	return last
}

// busySentence has no figure but the slack, which has few steps, so that it seldom changes: the silence of a leader is
// waited for as much longer, and so are all votes. An instance that is alone has nobody to take over.
func busySentence(late []string, slack time.Duration, alone bool) string {
	machines := "the machine of " + late[0] + " is busy, or was"
	if len(late) > 1 {
		machines = "the machines of " + strings.Join(late, ", ") + " are busy, or were"
	}
	follows := fmt.Sprintf("a failover may take up to %s longer", 2*slack)
	if alone {
		follows = "it takes longer until a server that hangs is noticed"
	}
	return fmt.Sprintf("%s in the last minutes: what happens there comes late, and %s. Give the Pods more CPU "+
		"(spec.resources), or take other work off their nodes", machines, follows)
}

// lastVerdict is what the status says of a condition, nothing where it is not there.
func (s *machinesTopic) lastVerdict(kind string) verdict {
	if last := condition(s.db.Status, kind); last != nil {
		return verdict{last.Status, last.Reason, last.Message}
	}
	return verdict{}
}

// How long what is said stays as it is: quietPause that machines are busy, so that one which is so now and then has
// little written; sentencePause all else.
const (
	sentencePause = 30 * time.Second
	quietPause    = 5 * time.Minute
)

// paced has what is said of each SampleDB change seldom: a busy machine must not have more written. An operator that
// starts anew takes what it sees first. The zero value is ready for use; it is safe for concurrent use.
type paced struct {
	mu  sync.Mutex
	all map[types.UID]pacedVerdict
}

// pacedVerdict is what is said since a time, how much it weighs, and when it was seen to be so last.
type pacedVerdict struct {
	verdict
	since, seen time.Time
	weight      time.Duration
}

// say is what is to be said where now a verdict would be. What is not true is said for a pause at least, in the same
// words, unless the next one weighs more. That there is nothing to say is said at once; where it is not known whether
// there is, the last one is said for a while.
func (p *paced) say(db types.UID, now time.Time, pause, weight time.Duration, next verdict) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.all[db]
	if last.status == metav1.ConditionTrue || weight > last.weight {
		pause = min(pause, sentencePause)
	}
	unknown := next.reason == "" && next.status == metav1.ConditionUnknown
	switch {
	case unknown && known && now.Sub(last.seen) < sentencePause:
		return last.verdict
	case unknown:
		next = verdict{}
	case known && next.reason != "":
		last.seen = now
		p.all[db] = last
	}
	switch {
	case next.reason == "":
		delete(p.all, db)
		return next
	case known && (last.verdict == next || now.Sub(last.since) < pause):
		return last.verdict
	case p.all == nil:
		p.all = map[types.UID]pacedVerdict{}
	}
	p.all[db] = pacedVerdict{next, now, now, weight}
	return next
}

func (p *paced) forget(db types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, db)
}

// paceMachines sets what is said of the machines of the instances, and of elections on them.
func (s *machinesTopic) paceMachines() {
	machines := s.onTime()
	s.machines = s.pacedMachines.say(s.db.UID, s.now, quietPause, s.slack, machines)
	s.leaderlessFor = s.leaderless.note(s.db.UID, "", s.primary() != "", s.now)
	s.vain = s.pacedVain.say(s.db.UID, s.now, sentencePause, 0, s.electionsInVain())
}
