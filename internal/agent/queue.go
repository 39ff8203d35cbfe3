package agent

import (
	"context"
	"sync"

	"toban.dev/internal/ha/machine"
)

// queue has the machine's commands carried out, one after the other. A fence ends the one that is being carried out.
type queue struct {
	life  context.Context //nolint:containedctx // it is the agent's
	do    func(ctx context.Context, c machine.Command) machine.Done
	ended func(machine.Command, machine.Done)

	mutex  sync.Mutex
	cancel context.CancelFunc
	over   chan struct{}
}

// begin begins a command.
func (x *queue) begin(c machine.Command) {
	ctx, cancel := context.WithCancel(x.life)
	over := make(chan struct{})
	x.mutex.Lock()
	x.cancel, x.over = cancel, over
	x.mutex.Unlock()
	go func() {
		defer close(over)
		defer cancel()
		d := x.do(ctx, c)
		d.ID = c.ID
		x.ended(c, d)
	}()
}

// end has the command end that is being carried out; the channel is closed when it has, nil where there is none.
func (x *queue) end() <-chan struct{} {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.cancel != nil {
		x.cancel()
	}
	return x.over
}
