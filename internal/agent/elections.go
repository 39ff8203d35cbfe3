package agent

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
)

// hands carry out what the machine wants. None of them waits for anything: what comes of it is an event.
type hands interface {
	carryOut(effect machine.Effect)
	// described is called after each step, before its effects.
	described(m *machine.Instance)
}

// elections drives the machine of package machine: it hands it events one after the other, and what it wants to the
// hands. It never waits for a disk, a server or a network, so that a fence waits for none of them either.
type elections struct {
	machine *machine.Instance
	hands   hands
	log     *slog.Logger
	began   time.Time
	events  chan machine.Event
	// handovers are asked for between two steps. first is called after the first one.
	handovers chan handoverAsked
	first     func()

	mutex   sync.Mutex
	replies map[uint64]chan machine.Effect
	last    uint64
	beat    time.Time
}

// eventRoom is how many events may wait: far more than come while one is taken in.
const eventRoom = 1024

// handoverAsked asks for a handover: give gives it away, and returns only if that fails.
type handoverAsked struct {
	give   func(machine.Handover) error
	answer chan error
}

// newElections drives a machine whose time begins at a moment.
func newElections(options machine.Options, began time.Time, hands hands, log *slog.Logger) *elections {
	options.Random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // no secret
	return &elections{
		machine: machine.New(options), hands: hands, log: log, began: began, beat: time.Now(),
		// The machine's own are lower.
		events: make(chan machine.Event, eventRoom), handovers: make(chan handoverAsked), first: func() {},
		replies: map[uint64]chan machine.Effect{}, last: 1 << 32,
	}
}

// at is a time as the machine measures it.
func (e *elections) at(t time.Time) time.Duration { return t.Sub(e.began) }

// run drives the machine until ctx ends, or nobody needs the instance any more, and says why.
func (e *elections) run(ctx context.Context) (machine.Ending, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ending := e.machine.Ending()
	for ; ending == ""; ending = e.machine.Ending() {
		var event machine.Event = machine.Tick{}
		select {
		case <-ctx.Done():
			return "", nil
		case <-timer.C:
		case event = <-e.events:
		case asked := <-e.handovers:
			asked.answer <- e.give(asked.give)
		}
		effects := e.machine.Step(time.Since(e.began), event)
		e.hands.described(e.machine)
		for _, effect := range effects {
			e.begin(effect)
		}
		e.moved()
		e.first()
		e.first = func() {}
		timer.Reset(e.machine.Wake(pause.Until))
	}
	e.log.Info("nobody needs the instance any more", "reason", string(ending))
	return ending, nil
}

// give hands over. No step is taken meanwhile, so it takes no time to speak of, or does not return.
func (e *elections) give(give func(machine.Handover) error) error {
	handover, busy := e.machine.HandOver(time.Since(e.began))
	if busy != "" {
		return fmt.Errorf("%w: %s", running.ErrBusy, busy)
	}
	return give(handover)
}

// handOver has the machine handed over. It returns why that was not done.
func (e *elections) handOver(ctx context.Context, give func(machine.Handover) error) error {
	asked := handoverAsked{give, make(chan error, 1)}
	select {
	case e.handovers <- asked:
		return <-asked.answer
	case <-ctx.Done():
		return fmt.Errorf("the instance is at work on something else: %w", ctx.Err())
	}
}

// begin begins an effect. Notes and answers need no hands.
func (e *elections) begin(effect machine.Effect) {
	switch effect := effect.(type) {
	case machine.Log:
		e.log.Info(effect.Message, effect.Values...)
	case machine.ReplyVote:
		e.reply(effect.ID, effect)
	case machine.ReplyConfiguration:
		e.reply(effect.ID, effect)
	case machine.ReplyDiscard:
		e.reply(effect.ID, effect)
	default:
		e.hands.carryOut(effect)
	}
}

// post hands an event to the machine.
func (e *elections) post(ctx context.Context, event machine.Event) {
	select {
	case e.events <- event:
	case <-ctx.Done():
	}
}

// ask hands an event to the machine, by a number of its own, and waits for the answer.
func (e *elections) ask(ctx context.Context, event func(id uint64) machine.Event) (machine.Effect, error) {
	e.mutex.Lock()
	e.last++
	id := e.last
	e.mutex.Unlock()
	return e.askAs(ctx, id, event(id))
}

// askAs is ask by a number that is known.
func (e *elections) askAs(ctx context.Context, id uint64, event machine.Event) (machine.Effect, error) {
	answer := make(chan machine.Effect, 1)
	e.mutex.Lock()
	e.replies[id] = answer
	e.mutex.Unlock()
	defer func() {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		delete(e.replies, id)
	}()
	e.post(ctx, event)
	select {
	case effect := <-answer:
		return effect, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("this instance is at work on something else: %w", ctx.Err())
	}
}

func (e *elections) reply(id uint64, effect machine.Effect) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if answer := e.replies[id]; answer != nil {
		answer <- effect
	}
}

// moved notes that a step was taken.
func (e *elections) moved() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.beat = time.Now()
}

// silence is how long no step was taken.
func (e *elections) silence() time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return time.Since(e.beat)
}
