package world

import (
	"testing"

	"toban.dev/internal/protocol"
)

// What was counted before the operator looked is none of its news, what comes after that is, of whatever agent: one
// that has started anew counts from nothing, and one that did not answer for a while is no new one.
func TestMoreCommitsThatWereCancelled(t *testing.T) {
	said := func(count int64) protocol.Status {
		return protocol.Status{Election: protocol.Election{CancelledCommits: count}}
	}
	var c cancelledCommits
	for i, step := range []struct {
		answers map[string]protocol.Status
		more    bool
	}{
		{map[string]protocol.Status{"db-0": said(7)}, false},
		{map[string]protocol.Status{"db-0": said(7), "db-1": said(2)}, false},
		{map[string]protocol.Status{"db-0": said(8), "db-1": said(2)}, true},
		{map[string]protocol.Status{"db-0": said(8), "db-1": said(2)}, false},
		{map[string]protocol.Status{"db-1": said(2)}, false},
		{map[string]protocol.Status{"db-0": said(8), "db-1": said(2)}, false},
		{map[string]protocol.Status{"db-0": said(0), "db-1": said(2)}, false},
		{map[string]protocol.Status{"db-0": said(1), "db-1": said(2)}, true},
		{map[string]protocol.Status{"db-0": said(1), "db-1": said(1)}, true},
		{map[string]protocol.Status{"db-0": said(1), "db-1": said(0)}, false},
	} {
		if more := c.More("uid", step.answers); more != step.more {
			t.Errorf("step %d: more were cancelled: %t", i, more)
		}
	}
	c.Forget("uid")
	if c.More("uid", map[string]protocol.Status{"db-0": said(9)}) {
		t.Error("a SampleDB that was forgotten is not a new one")
	}
}
