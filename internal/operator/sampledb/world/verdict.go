package world

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Adding is a verdict with one more sentence.
func (v Verdict) Adding(sentence string) Verdict {
	if sentence != "" {
		v.Message += ". " + sentence
	}
	return v
}

// Verdict is what a condition says.
type Verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Yes is the verdict of a condition that is true.
func Yes(reason, message string) Verdict { return Verdict{metav1.ConditionTrue, reason, message} }

// No is that of one that is false.
func No(reason, message string) Verdict { return Verdict{metav1.ConditionFalse, reason, message} }

// Unknown is that of one of which nothing is known.
func Unknown(message string) Verdict {
	return Verdict{metav1.ConditionUnknown, v1.ReasonUnknown, message}
}

// Problem is an error that the user can mend: it becomes the reason of the condition Ready.
type Problem struct {
	Reason  string
	Message string
	// Wait is how long until it is looked at again, if nothing happens before.
	Wait time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }
