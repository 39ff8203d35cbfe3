package console

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// todoContent is to each condition and reason what the user does; make generate writes it.
//
//go:embed todo.json
var todoContent []byte

var todo = mustTodo()

func mustTodo() (out map[string]map[string]string) {
	if err := json.Unmarshal(todoContent, &out); err != nil {
		panic(err) // it is compiled in, and a test reads it
	}
	return out
}

// todoOf is what the user does about a reason of a condition, with the database's name in it. A condition may have
// the reason of another, as Ready does.
func todoOf(condition, reason, name string) string {
	text := todo[condition][reason]
	if text == "" {
		for _, other := range []string{
			v1.ConditionReady, v1.ConditionInitialized, v1.ConditionConfigurationApplied, v1.ConditionStorageReady,
			v1.ConditionDurable, v1.ConditionHasRoom, v1.ConditionRestored, v1.ConditionUpgraded,
		} {
			if text = todo[other][reason]; text != "" {
				break
			}
		}
	}
	return strings.ReplaceAll(text, "NAME", name)
}

// Condition is one for people, with what to do.
type Condition struct {
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
	Todo    string       `json:"todo,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
	Level   string       `json:"level"`
}

// grave are the conditions that say, while they are false, that writes, data or the way back are at risk.
var grave = []string{
	v1.ConditionDurable, v1.ConditionHasRoom, v1.ConditionArchiving, v1.ConditionIntact, v1.ConditionKeysHeld,
	v1.ConditionCopied,
	v1.ConditionScheduled, v1.ConditionCollationsCurrent, v1.ConditionRestored, v1.ConditionInitialized,
	v1.ConditionStorageReady, v1.ConditionConfigurationApplied,
}

// conditionOf makes one of a database's conditions ready to be shown.
func conditionOf(c metav1.Condition, db *v1.SampleDB) Condition {
	since := c.LastTransitionTime
	out := Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		Todo: todoOf(c.Type, c.Reason, db.Name), Since: &since}
	out.Level = levelOf(out, db.Status.Phase)
	if out.Level == LevelWell {
		out.Todo = "" // nothing
	}
	return out
}

// levelOf says how urgent a condition is. What the user does about its reason begins with "nothing" or "wait" where
// that is all.
func levelOf(c Condition, phase string) string {
	begins := func(word string) bool { return strings.HasPrefix(c.Todo, word) }
	switch {
	case c.Status == string(metav1.ConditionTrue) || begins("nothing"):
		return LevelWell
	case c.Type == v1.ConditionAvailable && !quiet(phase) && c.Reason != v1.ReasonCreating:
		return LevelDown
	case begins("wait") && c.Status == string(metav1.ConditionUnknown):
		return LevelWell // nobody has looked yet, as into a new image
	case begins("wait"):
		return LevelBusy
	case slices.Contains(grave, c.Type), phase == phaseBlocked && c.Type == v1.ConditionReady:
		return LevelAct
	}
	return LevelWarn
}

// quiet says that a database in this phase is not expected to take writes.
func quiet(phase string) bool {
	return slices.Contains([]string{phaseStopped, phaseSleeping, phaseStopping, phaseStarting, phaseDeleting}, phase)
}

// conditionsOf are all conditions of a database, the most urgent first.
func conditionsOf(db *v1.SampleDB) []Condition {
	out := []Condition{}
	for _, c := range db.Status.Conditions {
		out = append(out, conditionOf(c, db))
	}
	slices.SortStableFunc(out, func(a, b Condition) int { return urgency(a.Level) - urgency(b.Level) })
	return out
}
