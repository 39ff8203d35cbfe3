package databaserestore

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/order"
)

// view is all that the decision depends on.
type view struct {
	order.View
	// notFound says that there is no SampleDB. notReady is why nothing can be restored from its archive now, noSource
	// why what is named can't be restored from, impossible why that will never change; "" where there is no such
	// reason.
	notFound                       bool
	notReady, noSource, impossible string
}

// decide says what to do. It is pure.
func decide(v view) order.Decision {
	return v.Decide(func() order.Decision { return order.Over(v1.ReasonCompleted, v.Job.Message) }, v.goOn)
}

// goOn is the decision to let it go on or wait, without a reason where nothing keeps it from beginning.
func (v view) goOn() order.Decision {
	if d := v.Begun(); d.Reason != "" {
		return d
	}
	switch {
	case v.notFound:
		return order.Wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.notReady != "":
		return order.Wait(v1.ReasonArchiveNotReady, v.notReady)
	case v.noSource != "":
		return order.Wait(v1.ReasonRestoreSourceNotFound, v.noSource)
	case v.impossible != "":
		return order.Over(v1.ReasonFailed, v.impossible)
	}
	return order.Decision{}
}
