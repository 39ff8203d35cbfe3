package world

import (
	"testing"

	"toban.dev/internal/protocol"
)

// What was counted before the operator looked is none of its news, what comes after that is, of whatever agent: one that
// has started since counts from nothing, and one that did not answer for a while is no new one.
func TestMoreCommitsThatWereCancelled(t *testing.T) {
	said := func(boot string, count int64) protocol.Status {
		return protocol.Status{Boot: boot, Election: protocol.Election{CancelledCommits: count}}
	}
	var c cancelledCommits
	for i, step := range []struct {
		answers map[string]protocol.Status
		more    bool
	}{
		{map[string]protocol.Status{"db-0": said("a", 7)}, false},
		{map[string]protocol.Status{"db-0": said("a", 7), "db-1": said("b", 2)}, false},
		{map[string]protocol.Status{"db-0": said("a", 8), "db-1": said("b", 2)}, true},
		{map[string]protocol.Status{"db-0": said("a", 8), "db-1": said("b", 2)}, false},
		{map[string]protocol.Status{"db-1": said("b", 2)}, false},
		{map[string]protocol.Status{"db-0": said("a", 8), "db-1": said("b", 2)}, false},
		{map[string]protocol.Status{"db-0": said("c", 0), "db-1": said("b", 2)}, false},
		{map[string]protocol.Status{"db-0": said("c", 1), "db-1": said("b", 2)}, true},
		{map[string]protocol.Status{"db-0": said("d", 1), "db-1": said("b", 2)}, true},
		{map[string]protocol.Status{"db-0": said("d", 1), "db-1": said("b", 1)}, true}, // as another program
		{map[string]protocol.Status{"db-0": said("d", 1), "db-1": said("b", 0)}, false},
	} {
		if more := c.More("uid", step.answers); more != step.more {
			t.Errorf("step %d: more were cancelled: %t", i, more)
		}
	}
	c.Forget("uid")
	if c.More("uid", map[string]protocol.Status{"db-0": said("d", 9)}) {
		t.Error("a SampleDB that was forgotten is not a new one")
	}
}
