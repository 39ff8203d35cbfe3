package fleet

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// That elections are in vain is said when nobody has led for vainPatience, and an instance has campaigned leastVain
// times: an election that is only slow needs less (docs/busy.md, "How elections do not feed on each other").
const (
	vainPatience = 10 * time.Second
	leastVain    = 4
)

// ElectionsInVain says that instances campaign and none is elected; nothing where that is not so, and Unknown without a
// word where too few answer, or a leader does not take writes yet. A figure in it would change again and again.
func (s *machinesTopic) ElectionsInVain() world.Verdict {
	most := 0
	for _, a := range s.Seen.Answers {
		most = max(most, a.InVain)
	}
	answer := len(s.Seen.Answers)
	switch {
	case most >= leastVain && 2*answer > len(s.Config.Members) && s.awaitsElection():
		return world.No(v1.ReasonElectionsInVain, s.vainSentence())
	case s.Primary() == "" && (answer < len(s.Config.Members) || s.Leader() != ""):
		return world.Verdict{Status: metav1.ConditionUnknown}
	}
	return world.Verdict{}
}

func (s *machinesTopic) vainSentence() string {
	sentence := "no instance takes writes, and none is elected for long: instances campaign in vain, and wait longer " +
		"after each time"
	if s.Machines.Reason == v1.ReasonMachineBusy {
		return sentence + "; " + s.Machines.Message
	}
	return sentence + "; kubectl toban logs " + s.DB.Name + " says which votes are refused, and why"
}

// awaitsElection says that nobody has led for vainPatience, and that one of the instances should be elected: enough of
// them have their data.
func (s *machinesTopic) awaitsElection() bool {
	lost := s.leaderlessFor
	if was := world.Condition(s.DB.Status, v1.ConditionAvailable); was != nil && was.Status != metav1.ConditionTrue {
		lost = max(lost, s.Now.Sub(was.LastTransitionTime.Time))
	}
	wanted := s.DB.DeletionTimestamp == nil && !s.Stop.Closed()
	return lost >= vainPatience && wanted && s.Leader() == "" && s.Loss.Reason != world.LossMajority
}

// roughly is the power of two that is not above a number.
func roughly(n int) int {
	if n < 1 {
		return 0
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// electing are the reasons of an instance without a leader that take turns while elections are in vain.
var electing = []string{
	"LeaderLost", "LeaderExpected", "LeaderUnknown", "Resting", "BetterCandidate", "AnotherStands",
	ha.RefusedNoMajority,
}

// Said is what an instance says of itself. While elections are in vain that would be something else at each look.
func (s *machinesTopic) Said(a protocol.Status) (reason, message string) {
	switch {
	case s.Vain.Reason == "" || !slices.Contains(electing, a.Reason):
		return a.Reason, a.Message
	case a.InVain == 0:
		return s.Vain.Reason, "waits for an instance to be elected"
	}
	return s.Vain.Reason, fmt.Sprintf("has seen at least %d elections in vain", roughly(a.InVain))
}
