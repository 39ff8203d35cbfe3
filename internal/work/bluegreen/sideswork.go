package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/pause"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/upgrade"
)

// How long something may take.
const (
	// slotPatience is for transactions that are under way when a slot is made.
	slotPatience = 10 * time.Minute
	// handPatience is for what is done in a pause.
	handPatience = 2 * time.Second
	// lockTimeout is for writers of a table that is compared, and comparePatience for how long its lock is tried.
	lockTimeout     = 300 * time.Millisecond
	comparePatience = 2 * time.Minute
	// undoPatience is for somebody to undo what makes definitions differ, before the whole copy is thrown away, and
	// undoneAsked how often it is looked at.
	undoPatience = 10 * time.Minute
	undoneAsked  = 10 * time.Second
	// cancelPatience is for a side that is about to be deleted.
	cancelPatience = 20 * time.Second
	// settlePatience is for standbys to get copies of a link's slots while the way back waits for that, leavePatience
	// before blue leaves.
	settlePatience = 30 * time.Second
	leavePatience  = 3 * time.Minute
	// behindAsked is how often it is asked how far the following side is.
	behindAsked = 2 * time.Second
	// turnPatience is for the former link to end, with all that it has still to bring.
	turnPatience = time.Minute
)

// LongTransaction and NotCompared are reasons besides those of package upgrade, and of a link.
const (
	LongTransaction = "LongTransaction"
	NotCompared     = change.NotCompared
)

// publish looks on the serving side for what can't follow, and makes there what is read from the position on.
func (s *sidesRun) publish(ctx context.Context) error {
	serving := s.link.Serving
	if s.settings.Position != "" { // the copy is made of that one, whatever there is by now
		s.result.Position = s.settings.Position
		return nil
	}
	s.Says("looks for what can't follow")
	facts, err := Examine(ctx, serving)
	if err != nil {
		return err
	}
	if s.result.Refusals = upgrade.Findings(change.CheckCarry(facts)); len(s.result.Refusals) > 0 {
		return nil
	}
	s.Says("makes publications and slots")
	if err := EnsureRole(ctx, serving); err != nil {
		return err
	}
	position, err := s.link.Publisher().Publish(ctx, slotPatience)
	if err != nil {
		return longTransaction(err)
	}
	s.result.Position = position.String()
	// The archive gets what the copy is made of soon, however little is written.
	return SwitchWAL(ctx, serving)
}

// longTransaction is something in the way, and no error.
func longTransaction(err error) error {
	if errors.Is(err, ErrLongTransaction) {
		return InTheWay{Reason: LongTransaction, Message: err.Error()}
	}
	return err
}

// whole says whether the following side can go on. If not, the result says why.
func (s *sidesRun) whole(ctx context.Context) (bool, error) {
	broken, err := s.link.Publisher().Broken(ctx)
	s.result.Broken = broken
	return err == nil && broken == "", err
}

// follow has green follow from the position. When green serves, blue follows already, and goes on.
func (s *sidesRun) follow(ctx context.Context) error {
	s.Says("looks for the slots")
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	if err := s.logIn(ctx, s.link); err != nil {
		return err
	}
	if !s.options.FromGreen {
		position, err := wal.ParseLSN(s.settings.Position)
		if err != nil {
			return fmt.Errorf("understand the position: %w", err)
		}
		s.Says("makes the subscriptions")
		if err := s.link.Adopt(ctx); err != nil {
			return err
		}
		if err := s.link.Follow(ctx, position); err != nil {
			return err
		}
	}
	return s.goOn(ctx)
}

// logIn has the following side of a link able to log in, with another password than before.
func (s *sidesRun) logIn(ctx context.Context, link Link) error {
	s.Says("makes a password")
	serving := s.blue
	if link.Serving.Name == s.green.name {
		serving = s.green
	}
	if err := serving.logIn(ctx); err != nil {
		return err
	}
	return link.Reconnect(ctx)
}

// goOn enables the subscriptions, and waits until all has come.
func (s *sidesRun) goOn(ctx context.Context) error {
	if err := s.link.Subscriber().Enable(ctx); err != nil {
		return err
	}
	return s.catchUp(ctx)
}

// catchUp waits until the following side has all that was committed before, and tells meanwhile how far it is. A slot
// may be lost meanwhile.
func (s *sidesRun) catchUp(ctx context.Context) error {
	s.Says(s.link.Following.Name + " catches up")
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	caught := make(chan error, 1)
	go func() { caught <- s.link.CatchUp(waiting) }()
	ticker := time.NewTicker(behindAsked)
	defer ticker.Stop()
	for {
		select {
		case err := <-caught:
			return err
		case <-ticker.C:
		}
		if broken, err := s.link.Publisher().Broken(ctx); err == nil && broken != "" {
			s.result.Broken = broken
			cancel()
			<-caught //nolint:errcheck // it says that it was ended
			return nil
		}
		s.Progress.Step(s.behind(ctx))
	}
}

// behind says how far the following side is.
func (s *sidesRun) behind(ctx context.Context) string {
	text := s.link.Following.Name + " catches up"
	if bytes, err := s.link.Behind(ctx); err == nil {
		text += fmt.Sprintf(": %d MB of WAL are to be applied", bytes>>20)
	}
	if n, err := s.link.Subscriber().Failures(ctx); err == nil && n > 0 {
		text += fmt.Sprintf(". It has failed %d times, and its log says why", n)
	}
	return text
}

// compare compares all rows of both sides.
func (s *sidesRun) compare(ctx context.Context) error {
	s.Says("looks for what is in the way")
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	look := func() error { // a password may be changed while it waits
		if err := s.link.CarryPasswords(ctx); err != nil {
			return err
		}
		return s.link.Look(ctx)
	}
	if err := untilUndone(ctx, look, s.Progress.Step); err != nil {
		return err
	}
	if err := s.catchUp(ctx); err != nil || s.result.Broken != "" {
		return err
	}
	s.Says("brings materialized views up to date")
	if _, err := s.link.CarryRefreshes(ctx); err != nil {
		return err
	}
	s.Says("compares all rows")
	found, err := s.link.Compare(ctx, Comparison{LockTimeout: lockTimeout, Patience: comparePatience,
		Held: func(table string) { s.Progress.Step("compares " + table) }})
	if err != nil {
		return err
	}
	s.compared(found)
	return nil
}

// untilUndone looks until nothing is in the way. What is costs the whole copy: so where definitions or what is shared
// differ, which somebody may undo, it tells that and is patient.
func untilUndone(ctx context.Context, look func() error, tell func(string)) error {
	for until := time.Now().Add(undoPatience); ; {
		var way InTheWay
		err := look()
		if !errors.As(err, &way) || !slices.Contains([]string{DefinitionsDiffer, RolesDiffer}, way.Reason) ||
			!time.Now().Before(until) {
			return err
		}
		tell(fmt.Sprintf("waits until %s for somebody to undo it: %s", until.UTC().Format(time.RFC3339), way.Message))
		if !pause.For(ctx, undoneAsked) { // this Pod is to end, and another one looks anew
			return fmt.Errorf("wait for somebody to undo what differs: %w", ctx.Err())
		}
	}
}

// compared says by the result what a comparison has found.
func (s *sidesRun) compared(found Compared) {
	s.result.Tables, s.result.Rows = found.Tables, found.Rows
	for i, d := range found.Differ {
		if i == mostDifferences {
			more := fmt.Sprintf("%d more tables differ", len(found.Differ)-i)
			s.result.Differences = append(s.result.Differences, more)
			break
		}
		s.result.Differences = append(s.result.Differences, s.sentence(d))
	}
	if len(found.NotCompared) > 0 {
		s.result.Refusals = upgrade.Findings([]major.Finding{{Reason: NotCompared, Objects: found.NotCompared,
			Message: "Transactions have held tables all the time, so that they could not be compared. End those, or " +
				"wait for them"}})
	}
}

// sentence says how a table differs.
func (s *sidesRun) sentence(d Difference) string {
	text := fmt.Sprintf("%s: %s has %d rows on %s and %d on %s", d.Database, d.Table, d.Serving, s.link.Serving.Name,
		d.Following, s.link.Following.Name)
	for _, only := range []struct {
		side string
		keys []string
	}{{s.link.Serving.Name, d.OnlyServing}, {s.link.Following.Name, d.OnlyFollowing}} {
		if len(only.keys) > 0 {
			text += fmt.Sprintf("; only %s has %s", only.side, strings.Join(only.keys, ", "))
		}
	}
	return text
}

// prepare makes the link back, which does not begin.
func (s *sidesRun) prepare(ctx context.Context) error {
	s.Says("makes the link back")
	if err := s.logIn(ctx, s.other); err != nil {
		return err
	}
	if err := longTransaction(s.link.Prepare(ctx, s.other, slotPatience)); err != nil || s.options.FromGreen {
		return err
	}
	return s.other.Publisher().HoldSchema(ctx) // as soon as green is opened, clients are there
}

// change hands over when it is told that no client is in any more.
func (s *sidesRun) change(ctx context.Context) error {
	s.Says("looks for what is in the way")
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	compared, err := s.link.WasCompared(ctx)
	if err != nil {
		return err
	}
	if err := s.readyToChange(ctx); err != nil || s.result.Broken != "" {
		return err
	}
	if err := s.AwaitBegin(ctx); err != nil {
		return err
	}
	s.Says("hands over")
	began := time.Now()
	hurry, cancel := context.WithTimeout(ctx, handPatience)
	defer cancel()
	handed, err := s.link.Hand(hurry)
	if err == nil { // last: whoever has taken part in it is who was compared
		err = s.link.Still(hurry, compared)
	}
	s.result.Seconds = time.Since(began).Seconds()
	s.Log.Info("handed over", "what", handed, "seconds", s.result.Seconds)
	return err
}

// readyToChange does all that can be done while clients are in, and looks once before, so that it is known who takes
// writes, and what is in the way is told.
func (s *sidesRun) readyToChange(ctx context.Context) error {
	if err := s.link.CarryPasswords(ctx); err != nil {
		return err
	}
	if err := s.link.Look(ctx); err != nil {
		return err
	}
	if !s.options.FromGreen {
		broken, err := s.other.Publisher().Broken(ctx)
		if err != nil {
			return err
		}
		if broken != "" {
			return InTheWay{Reason: LinkBackLost, Message: broken}
		}
	}
	if err := s.catchUp(ctx); err != nil || s.result.Broken != "" {
		return err
	}
	_, err := s.link.CarryRefreshes(ctx)
	return err
}

// settle has the former side follow the one that serves now, and removes the former link.
func (s *sidesRun) settle(ctx context.Context) error {
	s.Says("turns the link")
	hurry, stop := context.WithTimeout(ctx, turnPatience)
	defer stop()
	if err := s.other.Turn(hurry, s.link); err != nil || !s.options.FromGreen {
		return err
	}
	if err := s.link.Publisher().HoldSchema(ctx); err != nil {
		return err
	}
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	err := s.awaitCopies(ctx, settlePatience)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // there is a way back all the same
		s.Log.Warn("until a standby has copies of the slots, the way back hangs on one instance", "error", err.Error())
		return nil
	}
	return err
}

// awaitCopies waits until the link outlives a failover of the side that serves.
func (s *sidesRun) awaitCopies(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.link.Publisher().AwaitCopies(ctx, s.Progress.Step)
}

// leave has the following side stop, and forget its subscriptions. No slot moves on until it returns, so that no copy
// would get into step meanwhile.
func (s *sidesRun) leave(ctx context.Context) error {
	s.Says("leaves")
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	whole, err := s.link.Subscriber().Subscribed(ctx)
	if err == nil && whole { // else it was cut off after that
		err = s.awaitCopies(ctx, leavePatience)
	}
	if err != nil {
		return err
	}
	if err := s.link.Subscriber().Leave(ctx); err != nil {
		return err
	}
	// What of the former link may be left would be in the way of an upgrade in place.
	return s.other.Publisher().Remove(ctx)
}

// comeBack has the following side follow again, from where it left.
func (s *sidesRun) comeBack(ctx context.Context) error {
	s.Says("returns")
	if whole, err := s.whole(ctx); !whole {
		return err
	}
	if err := s.logIn(ctx, s.link); err != nil {
		return err
	}
	if err := s.link.Return(ctx); err != nil {
		return err
	}
	return s.goOn(ctx)
}

// cancel removes all that there is of both links, on green if it answers.
func (s *sidesRun) cancel(ctx context.Context) error {
	s.Says("removes what there is of the links")
	if len(s.green.hosts) > 0 {
		s.hear(ctx)
		hurry, stop := context.WithTimeout(ctx, cancelPatience)
		defer stop()
		if err := removeLinks(hurry, s.green.side()); err != nil {
			s.Log.Warn("green keeps what it has of the links", "error", err.Error())
		}
	}
	return removeLinks(ctx, s.blue.side())
}

// hear has blue hear the last word of green, if it has followed it.
func (s *sidesRun) hear(ctx context.Context) {
	hurry, stop := context.WithTimeout(ctx, cancelPatience)
	defer stop()
	if err := Back(s.blue.side(), s.green.side(), s.settings.ID).LastWord(hurry); err != nil {
		s.Log.Warn("what was committed on green at last may be lost", "error", err.Error())
	}
}

func removeLinks(ctx context.Context, side Side) error {
	if err := Cancel(ctx, side); err != nil {
		return err
	}
	return RemoveRole(ctx, side)
}

// Unlink removes what a backup has of the links of a blue/green upgrade: there is one side again.
func Unlink(ctx context.Context, connect initjob.Connect) error {
	return removeLinks(ctx, Side{Name: "the primary", Connect: connect})
}
