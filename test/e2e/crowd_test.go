//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/test/crowd"
)

// crowdWrites is how long after a load all may take until they take writes again.
const crowdWrites = time.Minute

// Five SampleDBs that are made at once come up, cost little at rest, and do not elect without a cause, also while loops
// keep the processors busy.
func TestLongACrowdDoesNotElect(t *testing.T) {
	s := beginAlone(t)
	c := crowd.New(s.Namespace, 5)
	must(t, c.Create(s.ctx, ""))
	took, err := c.Ready(s.ctx, patience)
	must(t, err)
	t.Logf("all were ready after %s", took)
	s.elects(c, 0, "at rest", func() {
		usage, err := crowd.Measure(s.ctx, time.Minute)
		must(t, err)
		t.Logf("an agent takes %.4f of a processor", usage.Each(crowd.Agents))
	})
	s.elects(c, 1, "on busy processors", func() { must(t, crowd.Loop(s.ctx, 2*runtime.NumCPU(), 2*time.Minute)) })
	must(t, c.TakeWrites(s.ctx, crowdWrites))
}

// Under a CPU limit that its load needs more than, a SampleDB does not elect.
func TestLongAHeldContainerDoesNotElect(t *testing.T) {
	s := beginAlone(t)
	c := crowd.New(s.Namespace, 2)
	must(t, c.Create(s.ctx, ", resources: {limits: {cpu: 200m}, requests: {cpu: 10m}}"))
	_, err := c.Ready(s.ctx, patience)
	must(t, err)
	s.elects(c, 0, "under pgbench, with 200m", func() {
		tps, err := c.Pgbench(s.ctx, 4, 3*time.Minute)
		must(t, err)
		t.Logf("%.0f transactions a second", tps)
	})
}

// One that can't elect, or does so with great effort, takes no other along. make bench-crowd judges what it costs.
func TestLongOneInTroubleTakesNoOtherAlong(t *testing.T) {
	s := beginAlone(t)
	c := crowd.New(s.Namespace, 5)
	must(t, c.Create(s.ctx, ""))
	_, err := c.Ready(s.ctx, patience)
	must(t, err)
	for i, trouble := range crowd.Troubles {
		name := c.Names[i]
		s.elects(c.Without(c.Names[:i+1]...), 0, "beside one with "+trouble.What, func() {
			must(t, trouble.Make(s.ctx, c, name))
			usage, err := crowd.Measure(s.ctx, time.Minute)
			must(t, err)
			t.Logf("%s: the operator takes %.3f of a processor, the API server %.3f, the nodes %.3f", trouble.What,
				usage.Cores[crowd.Operator], usage.Cores[crowd.APIServer], usage.Cores[crowd.Nodes])
		})
		if trouble.Mends {
			must(t, crowd.Crowd{Namespace: s.Namespace, Names: []string{name}}.TakeWrites(s.ctx, crowdWrites))
		}
	}
	must(t, c.Without(c.Names[:len(crowd.Troubles)]...).TakeWrites(s.ctx, crowdWrites))
}

// elects fails where one of a crowd elects more often than it may meanwhile.
func (s *story) elects(c crowd.Crowd, most uint64, what string, do func()) {
	s.Helper()
	before, err := c.Terms(s.ctx)
	must(s.T, err)
	do()
	all, one, err := c.Elections(s.ctx, before)
	must(s.T, err)
	if one > most {
		s.Errorf("%s there were %d elections, %d of one, which may be %d", what, all, one, most)
	}
}

// Triggers at login are a user's code. One that writes can't work on a standby, one that raises an error lets nobody in
// at all, and one that sleeps is too slow for everybody. Toban's own sessions do without them: an instance is elected,
// backups are taken, and the superuser gets in to drop them.
func TestLoginTriggersDoNotLockTobanOut(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	s.ready("shop")
	for i, body := range []string{
		"INSERT INTO public.logins VALUES (now())", "RAISE EXCEPTION $m$nobody$m$", "PERFORM pg_sleep(30)",
	} {
		s.withoutTriggers("shop", `CREATE TABLE IF NOT EXISTS public.logins (at timestamptz);
			CREATE OR REPLACE FUNCTION public.logged_in() RETURNS event_trigger LANGUAGE plpgsql AS
				$f$ BEGIN `+body+`; END $f$;
			DROP EVENT TRIGGER IF EXISTS logged_in;
			CREATE EVENT TRIGGER logged_in ON login EXECUTE FUNCTION public.logged_in();
			ALTER EVENT TRIGGER logged_in ENABLE ALWAYS;`)
		before := s.ready("shop").Status.Primary
		s.run("delete", "pod", before, "--wait=false")
		s.until(func(ctx context.Context) error {
			return s.access("shop", naming.ReadWriteService("shop")).Do(ctx, "SELECT 1")
		})
		s.ready("shop")
		backup := fmt.Sprintf("locked-%d", i)
		s.toban("backup", "shop", "--name", backup)
		s.completed(backup)
		s.toban("top", "shop")
	}
}

// withoutTriggers runs statements in the database postgres as the superuser, in a session that no trigger keeps out.
func (s *story) withoutTriggers(name, statements string) {
	s.Helper()
	primary := s.ready(name).Status.Primary
	_, err := s.KubectlWith(s.ctx, statements, "exec", "-i", primary, "--", "env", "PGOPTIONS=-c event_triggers=off",
		"psql", "-U", "postgres", "-X", "--set=ON_ERROR_STOP=1", "postgres")
	must(s.T, err)
}
