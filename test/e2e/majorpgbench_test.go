//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// While pgbench writes, few instances move to the newest major version, with an archive and without, and by another
// method than the file system's best: the sums of pgbench's tables fit, and none of its transactions is missing. Three
// instances do so in TestLongAMajorUpgradeUnderLoad, and one without a load in TestAMajorUpgrade.
func TestLongMajorUpgradesUnderPgbench(t *testing.T) {
	const none = "backup: {none: true}"
	for name, c := range map[string]struct {
		from, instances int
		archive         bool
		method          string // asked for, "" for the best
		spec            []string
	}{ // the names begin with what differs: namespaces have the begin of them
		"1 from 15 with an archive": {15, 1, true, "", nil},
		"1 from 17":                 {17, 1, false, "", []string{none}},
		"2 from 17 by copying":      {17, 2, false, protocol.MethodCopy, []string{none, "upgrade: {method: Copy}"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.apply(formerOf(c.from, "shop", c.instances, c.spec...))
			s.ready("shop")
			if c.archive {
				s.condition("shop", v1.ConditionArchiving, "True", "")
			}
			rows, sums := s.writing("shop"), s.benching("shop")
			s.patch("shop", `{"version":18}`)
			db := s.upgradedTo("shop", c.from, 18)
			sums()
			rows(outside.Upgrade)
			u := db.Status.Upgrade
			if c.method != "" && u.Method != c.method {
				t.Errorf("the method is %s, want %s", u.Method, c.method)
			}
			if c.instances > 1 {
				s.condition("shop", v1.ConditionDurable, "True", "")
			}
			if c.archive {
				s.archivedBefore(db, c.from)
			} else if u.Backup != "" || u.Rehearsal == nil || u.Rehearsal.Result != v1.RehearsalSkipped {
				t.Errorf("without an archive there is the backup %q, and the rehearsal %+v", u.Backup, u.Rehearsal)
			}
		})
	}
}

// benching has pgbench work through the Service; what must be true of its tables in the end is checked by the function
// that is returned. Its sessions end with the former server, and then it is started again.
func (s *story) benching(name string) func() {
	s.Helper()
	access := s.access(name, naming.ReadWriteService(name))
	_, err := outside.Pgbench(s.ctx, access, "--initialize", "--quiet")
	must(s.T, err)
	running, stop := context.WithCancel(s.ctx)
	ended := make(chan outside.Bench, 1)
	go func() {
		// No faster: other stories need the machine too.
		ended <- outside.PgbenchAgain(running, access, 5*time.Second, "--client=2", "--rate=40")
	}()
	end := sync.OnceValue(func() outside.Bench { stop(); return <-ended })
	s.Cleanup(func() { end() })
	const history = "pgbench_history" // a row for each transaction
	s.atLeastIn(name, history, 100)
	return func() {
		s.Helper()
		s.atLeastIn(name, history, s.countIn(name, history)+100)
		told := end().Transactions
		s.sumsFit(name, told)
	}
}

// sumsFit expects each of pgbench's transactions to be there wholly or not at all, and those that it told of to be
// there: the sums of all balances are that of all changes.
func (s *story) sumsFit(name string, told int64) {
	s.Helper()
	var accounts, tellers, branches, changes, transactions int64
	text := s.ask(name, `SELECT concat_ws(' ', (SELECT sum(abalance) FROM pgbench_accounts),
		(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches),
		(SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history))`)
	if _, err := fmt.Sscan(text, &accounts, &tellers, &branches, &changes, &transactions); err != nil {
		s.Fatalf("the sums are %q: %v", text, err)
	}
	if accounts != changes || tellers != changes || branches != changes {
		s.Errorf("the sums are %d of accounts, %d of tellers, %d of branches, and %d of all changes",
			accounts, tellers, branches, changes)
	}
	if told == 0 || transactions < told {
		s.Errorf("there are %d transactions, and pgbench tells of %d", transactions, told)
	}
	s.Logf("pgbench tells of %d transactions, %d are there", told, transactions)
}
