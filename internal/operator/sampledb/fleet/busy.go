package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// machinesTopic says whether the instances' machines are busy, and whether elections are in vain.
type machinesTopic struct {
	base
	// Machines is the condition OnTime; nothing where that is not so.
	Machines world.Verdict
	// slack is the longest that is told, leaderlessFor for how long no leader has answered.
	slack, leaderlessFor time.Duration
}

// onTime says whether things come on time on the machines of the instances, by the word of their agents (docs/busy.md,
// "A machine that is busy"). While one that is not known to be late is not heard, the condition stays as it was. There
// is none where no agent says so: those of earlier releases don't.
func (s *machinesTopic) onTime() world.Verdict {
	var late, unheard, behind []string
	said := 0
	s.slack = 0
	for _, m := range s.Config.Members {
		answer, heard := s.Seen.Answers[m.Name]
		if answer.Election.Replaying && answer.Election.Unreplayed > muchToReplay {
			behind = append(behind, m.Name)
		}
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
		return world.No(v1.ReasonMachineBusy, busySentence(late, s.slack, s.Instances() == 1))
	case len(behind) > 0 && !s.Stop.Down():
		return world.No(v1.ReasonReplayBehind, behindSentence(behind))
	case s.Stop.Down() || said == 0 && len(unheard) == 0:
		return world.Verdict{}
	case said < len(s.Config.Members):
		return s.stillLate(unheard)
	}
	return world.Yes(v1.ReasonOnTime, "nothing comes late on the machines of the instances")
}

// muchToReplay is how many bytes of WAL an instance must have to replay until that is told: it takes a while.
const muchToReplay = 256 << 20

// behindSentence has no figure, so that it seldom changes.
func behindSentence(behind []string) string {
	return fmt.Sprintf("of the WAL that is received, much is to be replayed yet on %s, which can't lead before that: "+
		"if no other can, a failover waits for it. Look for what holds replay up: a slow disk, long queries, or a "+
		"pause", strings.Join(behind, ", "))
}

// stillLate is the condition as it was, while some are not heard; nothing where it was about others alone, which are on
// time now.
func (s *machinesTopic) stillLate(unheard []string) world.Verdict {
	last := s.lastVerdict(v1.ConditionOnTime)
	about := func(name string) bool {
		return strings.Contains(last.Message, name+" ") || strings.Contains(last.Message, name+",")
	}
	if last.Status == metav1.ConditionFalse && !slices.ContainsFunc(unheard, about) {
		return world.Verdict{}
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
func (s *machinesTopic) lastVerdict(kind string) world.Verdict {
	if last := world.Condition(s.DB.Status, kind); last != nil {
		return world.Verdict{Status: last.Status, Reason: last.Reason, Message: last.Message}
	}
	return world.Verdict{}
}

// PaceMachines sets what is said of the machines of the instances, and of elections on them.
func (s *machinesTopic) PaceMachines() {
	machines := s.onTime()
	s.Machines = s.PacedMachines.Say(s.DB.UID, s.Now, world.QuietPause, s.slack, machines)
	s.leaderlessFor = s.Leaderless.Note(s.DB.UID, "", s.Primary() != "", s.Now)
	s.Vain = s.PacedVain.Say(s.DB.UID, s.Now, world.SentencePause, 0, s.ElectionsInVain())
}

// TellCancelledCommits has an event where commits were cancelled while they waited. It has no figure, so that one event
// stands for all that come in a row.
func (s *machinesTopic) TellCancelledCommits() {
	if s.Cancelled.More(s.DB.UID, s.Seen.Answers) {
		s.AddWarning(world.EventCommitsCancelled, "clients have cancelled commits that waited for standbys. They were "+
			"told that these have succeeded, but they may be on the primary alone, and a failover would lose them. "+
			"Commits must not be cancelled while they wait (docs/durability.md)")
	}
}
