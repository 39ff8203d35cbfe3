package status

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/protocol"
)

// Who hears of a status tells by its number what is newer; to look changes nothing.
func TestEachChangeHasANumber(t *testing.T) {
	b := New(protocol.Status{Name: "db-0", Number: 5})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { b.Change(func(s *protocol.Status) { s.Term++ }) })
		all.Go(func() { _ = b.Get() })
	}
	all.Wait()
	if s := b.Get(); s.Name != "db-0" || s.Number != 105 || s.Term != 100 {
		t.Errorf("it says %+v", s)
	}
}

// How long the leader has not been heard is true when it is read, not when it was noted.
func TestTheSilenceOfTheLeaderGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(protocol.Status{})
		if s := b.Get().Election.Silence; s != 0 {
			t.Errorf("it knows of a silence of %s", s)
		}
		b.Hear(time.Second)
		time.Sleep(300 * time.Millisecond)
		b.Change(func(s *protocol.Status) { s.Election = protocol.Election{} })
		if s := b.Get().Election.Silence; s != 1300*time.Millisecond {
			t.Errorf("it says %s", s)
		}
	})
}
