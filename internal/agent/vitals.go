package agent

import (
	"context"
	"errors"
	"time"

	"toban.dev/internal/agent/status"
)

// roleSilence is how long the elections may not move before the instance is not called ready any more.
const roleSilence = 15 * time.Second

// maxSilence is how long they may not before the kubelet may think that the agent hangs.
const maxSilence = 60 * time.Second

// vitals are what the kubelet is told.
type vitals struct {
	// silence is how long the elections have not moved, and whether they have begun.
	silence func() (time.Duration, bool)
	status  *status.Board
}

// alive is nil where the agent does not hang. One that waits for its volume does not.
func (v *vitals) alive(context.Context) error {
	if silence, begun := v.silence(); begun && silence >= maxSilence {
		return errors.New("the elections have not moved for a minute")
	}
	return nil
}

// ready is nil where the instance does what its role asks, as seen by a query not long ago.
func (v *vitals) ready(context.Context) error {
	silence, begun := v.silence()
	if status := v.status.Get(); !begun || !status.Ready || silence >= roleSilence {
		return errors.New(status.Reason + ": " + status.Message)
	}
	return nil
}
