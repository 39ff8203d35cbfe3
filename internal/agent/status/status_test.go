package status

import (
	"sync"
	"testing"

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
