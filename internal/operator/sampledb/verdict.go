package sampledb

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// verdict is what a condition says.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// yes is the verdict of a condition that is true.
func yes(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }

// no is that of one that is false.
func no(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }

// unknown is that of one of which nothing is known.
func unknown(message string) verdict {
	return verdict{metav1.ConditionUnknown, v1.ReasonUnknown, message}
}

// problem is an error that the user can mend: it becomes the reason of the condition Ready.
type problem struct {
	reason  string
	message string
	// wait is how long until it is looked at again, if nothing happens before.
	wait time.Duration
}

func (p *problem) Error() string { return p.reason + ": " + p.message }
