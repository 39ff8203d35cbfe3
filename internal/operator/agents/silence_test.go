package agents

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// agent answers after a time; the zero one never does.
type agent struct {
	after         atomic.Int64
	asked, beside atomic.Int32
	told          atomic.Int32
}

func (a *agent) answer(ctx context.Context) error {
	var answers <-chan time.Time
	if after := time.Duration(a.after.Load()); after > 0 {
		answers = time.After(after)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-answers:
		return nil
	}
}

func (a *agent) inquiry(host string) inquiry {
	return inquiry{
		who:   at{"x", host},
		ask:   func(ctx context.Context) error { a.asked.Add(1); return a.answer(ctx) },
		again: func(ctx context.Context) error { a.beside.Add(1); return a.answer(ctx) },
		tell:  func() { a.told.Add(1) },
	}
}

func TestASilentAgentCostsAWorkerAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silences
		silent, quick := &agent{}, &agent{}
		quick.after.Store(int64(5 * time.Millisecond))
		var waited time.Duration
		for i := range 600 {
			start := time.Now()
			err := s.sync(t.Context(), silent.inquiry("silent"))
			waited += time.Since(start)
			if want := map[bool]error{true: ErrDoubted, false: ErrSilent}[i < 20]; i != 20 && !errors.Is(err, want) {
				t.Fatalf("question %d: %v, want %v", i, err, want)
			}
			if err := s.sync(t.Context(), quick.inquiry("quick")); err != nil {
				t.Fatalf("a quick one: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if waited > patienceFirst || silent.asked.Load() != 1 || silent.told.Load() != 1 {
			t.Errorf("workers have waited %v, it was asked %d times, and %d times it was news", waited,
				silent.asked.Load(), silent.told.Load())
		}
		if n := silent.beside.Load(); n < 4 || n > 10 {
			t.Errorf("in a minute it was asked beside %d times", n)
		}
		time.Sleep(patienceLast) // a question may be on its way
	})
}

func TestASilentAgentThatComesBackIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silences
		a := &agent{}
		for range 100 {
			_ = s.sync(t.Context(), a.inquiry("a"))
			time.Sleep(time.Second)
		}
		a.after.Store(int64(time.Millisecond))
		told := a.told.Load()
		back := time.Now()
		for a.told.Load() == told {
			_ = s.sync(t.Context(), a.inquiry("a"))
			time.Sleep(time.Second)
		}
		if took := time.Since(back); took > lastSilence+2*time.Second {
			t.Errorf("that took %v", took)
		}
		if err := s.sync(t.Context(), a.inquiry("a")); err != nil || len(s.all) != 0 {
			t.Errorf("it is asked: %v, and %d agents are on record", err, len(s.all))
		}
	})
}

func TestASlowAgentIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silences
		a := &agent{}
		a.after.Store(int64(time.Second))
		if err := s.sync(t.Context(), a.inquiry("a")); !errors.Is(err, ErrDoubted) {
			t.Fatalf("the first time: %v", err)
		}
		if err := s.sync(t.Context(), a.inquiry("a")); !errors.Is(err, ErrDoubted) {
			t.Fatalf("while it is being asked beside: %v", err)
		}
		time.Sleep(1100 * time.Millisecond)
		if a.told.Load() != 1 {
			t.Fatalf("it has answered, and %d times that was told", a.told.Load())
		}
		for range 3 {
			if err := s.sync(t.Context(), a.inquiry("a")); err != nil {
				t.Fatalf("it answers within its time: %v", err)
			}
		}
		a.after.Store(0)
		if err := s.sync(t.Context(), a.inquiry("a")); !errors.Is(err, ErrDoubted) {
			t.Fatalf("it is silent: %v", err)
		}
		time.Sleep(patienceLast + time.Second)
		if err := s.sync(t.Context(), a.inquiry("a")); !errors.Is(err, ErrSilent) {
			t.Fatalf("it is still silent: %v", err)
		}
		time.Sleep(patienceLast + time.Second)
		if s.forget("x"); len(s.all) != 0 {
			t.Errorf("of a SampleDB that is gone %d agents are on record", len(s.all))
		}
	})
}

func TestAnAgentThatRefusesIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silences
		refused := errors.New("connection refused")
		for range 3 {
			err := s.sync(t.Context(), inquiry{who: at{"x", "a"},
				ask: func(context.Context) error { return refused }})
			if !errors.Is(err, refused) || len(s.all) != 0 {
				t.Errorf("%v, and %d agents are on record", err, len(s.all))
			}
		}
	})
}

func TestAnAgentThatNobodyAsksForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silences
		for _, host := range []string{"a", "b"} {
			_ = s.sync(t.Context(), (&agent{}).inquiry(host))
			time.Sleep(2 * forgotten)
		}
		if len(s.all) != 1 {
			t.Errorf("%d agents are on record", len(s.all))
		}
	})
}
