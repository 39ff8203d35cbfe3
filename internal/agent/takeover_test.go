package agent

import (
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// Others compare what a process began with to what the one before has said: the first status of the next program must
// not have what the program before began with, which is less.
func TestAProgramThatTakesOverBeganWithWhatIsOnTheVolume(t *testing.T) {
	t.Parallel()
	began := func(term uint64) ha.Progress { return ha.Progress{Voter: "db-0.1", Term: term} }
	before := protocol.Status{
		Name: "db-0", Boot: "former", Number: 9, Role: protocol.RolePrimary, Ready: true, Term: 3,
		Election: protocol.Election{Voter: "db-0.1", Leading: true, Began: began(1)},
		Program:  &protocol.Program{SHA256: "former"},
	}
	s := takenOver(protocol.Status{Name: "db-0", Boot: "next"}, before, began(3))
	if s.Election.Began != began(3) || s.Boot != "next" || s.Number != 0 || s.Program != nil {
		t.Errorf("it says %+v", s)
	}
	if !s.Election.Leading || !s.Ready || s.Role != protocol.RolePrimary || s.Term != 3 {
		t.Errorf("what is still so is not said: %+v", s)
	}
}
