//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Three instances under load move to another major version by a second side, and come home: no client sees an error
// before sides change, and later none but the end of its session; nothing acknowledged is lost, in two databases;
// identity columns and sequences go on; and in the end there is no trace of the second side.
func TestLongBlueGreen(t *testing.T) {
	s := beginAlone(t)
	s.apply(twoSided("shop", 3, windowClosed()))
	primary := s.ready("shop").Status.Primary
	s.condition("shop", v1.ConditionArchiving, "True", "")
	first := s.access("shop", naming.ReadWriteService("shop"))
	second := first
	second.Database = "second"
	if _, err := s.inside(primary, "CREATE DATABASE second OWNER "+first.User); err != nil {
		t.Fatal(err)
	}
	both := []items{s.makeItems(first), s.makeItems(second)}
	clients, err := outside.StartClients(s.ctx, 2, first.Connect)
	must(t, err)
	t.Cleanup(clients.Stop)
	s.sql("shop", "ALTER TABLE written ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY UNIQUE")
	before := s.traces("shop", first.Database, second.Database)
	pause := s.watchPauses(clients)

	s.patch("shop", `{"version":18}`)
	s.sides("shop", v1.SidesReady, v1.SideBlue)
	if failed := clients.Errors(); len(failed) > 0 {
		t.Errorf("before sides change %d writes saw an error: %v", len(failed), failed[0])
	}
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	pause() // what was before does not count
	s.opensWindow("shop")
	s.sides("shop", v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn("shop", naming.Green("shop"), 18)
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	s.bearable("the change of sides", pause())
	for i := range both {
		both[i].add(s, 20)
	}

	s.run("annotate", "sampledb", "shop", naming.AnnotationAcceptUpgrade+"=yes")
	s.sides("shop", v1.UpgradeUpgraded, v1.SideBlue)
	s.upgraded("shop", 18, func(string) {})
	s.condition("shop", v1.ConditionUpgraded, "True", v1.ReasonUpgraded)
	s.clientsAreOn("shop", "shop", 18)
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	s.bearable("coming home", pause())
	for i := range both {
		both[i].add(s, 30)
		both[i].expect(s, "17:10 18:50")
	}
	s.noSecondSide("shop", before, first.Database, second.Database)
	s.condition("shop", v1.ConditionArchiving, "True", "")
	s.condition("shop", v1.ConditionDurable, "True", "")
	s.ready("shop")
	must(t, clients.LoseNothing(s.ctx))
	must(t, endsOfSessions(clients.Failures()))
	t.Logf("%d rows acknowledged, %d writes ended with their sessions", clients.Written(), len(clients.Errors()))
	twice := s.ask("shop", "SELECT count(*) - least(count(DISTINCT id), count(DISTINCT n)) FROM written")
	if twice != "0" {
		t.Errorf("%s rows are there twice", twice)
	}
}

// A pair goes to another major version and back: the former one serves with all that was written on the new one, the
// sequences go on, and nothing of the second side is left on any instance. It is Ready when the spec wants what runs.
func TestLongBlueGreenAndBack(t *testing.T) {
	s := beginAlone(t)
	rows, before, check := s.changesToGreen(2) // the standby has copies of the link's slots meanwhile
	s.wayBackIs("shop", v1.WayBackBack)

	s.run("annotate", "sampledb", "shop", naming.AnnotationUpgradeBack+"=now")
	s.sides("shop", v1.UpgradeFailed, v1.SideBlue)
	s.clientsAreOn("shop", "shop", 17)
	rows.add(s, 5)
	rows.expect(s, "17:15 18:20")
	words := s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed)
	if !strings.Contains(words, "the way back was asked for") {
		t.Errorf("it says %q", words)
	}
	s.noSecondSide("shop", before, rows.access.Database)
	if left := s.path("shop", "{.metadata.annotations}"); strings.Contains(left, naming.AnnotationUpgradeBack) {
		t.Errorf("the request is still there: %s", left)
	}
	check(outside.SidesChange)

	s.patch("shop", `{"version":17}`)
	s.ready("shop")
	s.clientsAreOn("shop", "shop", 17)
	rows.expect(s, "17:15 18:20")
}

// changesToGreen has the SampleDB shop with so many instances change to its second side, under a writer whose rows are
// checked in the end, and returns a table with rows of both versions and the traces of before.
func (s *story) changesToGreen(instances int) (rows items, before string, check func(outside.Bound)) {
	s.Helper()
	s.apply(twoSided("shop", instances))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", "")
	rows = s.makeItems(s.access("shop", naming.ReadWriteService("shop")))
	check = s.writing("shop")
	before = s.traces("shop", rows.access.Database)
	s.patch("shop", `{"version":18}`)
	s.sides("shop", v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn("shop", naming.Green("shop"), 18)
	rows.add(s, 20)
	return rows, before, check
}

// twoSided is a SampleDB that moves to another major version by a second side.
func twoSided(name string, instances int, more ...string) string {
	return sampleDB(name, instances, append([]string{"upgrade: {strategy: BlueGreen}"}, more...)...)
}

// windowClosed is a line of a spec with a window that does not open in the next two days.
func windowClosed() string {
	return fmt.Sprintf("update: {window: {days: [%s], start: \"00:00\", duration: 1h}}",
		time.Now().UTC().AddDate(0, 0, 3).Weekday())
}

// opensWindow takes the window away, so that what waits for it goes on.
func (s *story) opensWindow(name string) {
	s.Helper()
	s.patch(name, `{"update":null}`)
}

// sidesPatience is how long a second side may take: it is made of a backup, and upgraded.
const sidesPatience = 3 * patience

// stepOf is the step of a blue/green upgrade, and which side serves.
func stepOf(db v1.SampleDB) (step, serves string) {
	switch u := db.Status.Upgrade; {
	case u == nil:
		return "", v1.SideBlue
	case u.Sides == nil:
		return u.Step, v1.SideBlue
	default:
		return u.Sides.Step, u.Sides.Serves
	}
}

// sides waits until a blue/green upgrade is at a step, and a side serves. It tells each step that it sees.
func (s *story) sides(name, step, serves string) {
	s.Helper()
	was := ""
	must(s.T, outside.Until(s.ctx, sidesPatience, func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		now, by := stepOf(db)
		if now != was {
			was = now
			s.Logf("%s: %s, %s serves", time.Now().Format("15:04:05.0"), now, by)
		}
		switch {
		case now == step && by == serves:
			return nil
		case now == v1.UpgradeFailed:
			s.Fatalf("the upgrade has failed: %s", db.Status.Upgrade.Message)
		}
		return fmt.Errorf("the upgrade is at %s, and %s serves; want %s, %s: %+v", now, by, step, serves,
			db.Status.Upgrade)
	}))
}

// wayBackIs waits until an upgrade has a way back.
func (s *story) wayBackIs(name, way string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err == nil && db.Status.Upgrade.WayBack != way {
			err = fmt.Errorf("the way back is %q: %s", db.Status.Upgrade.WayBack, db.Status.Upgrade.Message)
		}
		return err
	})
}

// clientsAreOn waits until the Service leads to an instance of a side, with a major version.
func (s *story) clientsAreOn(name, side string, major int) {
	s.Helper()
	access := s.access(name, naming.ReadWriteService(name))
	s.until(func(ctx context.Context) error {
		at, err := access.Ask(ctx, `SELECT current_setting('server_version_num')::int / 10000 || ' ' ||
			host(inet_server_addr())`)
		if err != nil {
			return err
		}
		pods, err := s.Pods(ctx, side)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if at == fmt.Sprintf("%d %s", major, pod.Status.PodIP) {
				return nil
			}
		}
		return fmt.Errorf("the Service leads to %s, which is no instance of %s with PostgreSQL %d", at, side, major)
	})
}

// watchPauses watches when Clients write nothing. What it returns says for how long at most, since it was last asked.
func (s *story) watchPauses(clients *outside.Clients) func() time.Duration {
	var mutex sync.Mutex
	var longest time.Duration
	ctx, stop := context.WithCancel(s.ctx)
	s.Cleanup(stop)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for rows, at := clients.Written(), time.Now(); ctx.Err() == nil; <-tick.C {
			now := clients.Written()
			mutex.Lock()
			longest = max(longest, time.Since(at))
			mutex.Unlock()
			if now != rows {
				rows, at = now, time.Now()
			}
		}
	}()
	return func() time.Duration {
		mutex.Lock()
		defer mutex.Unlock()
		asked := longest
		longest = 0
		return asked
	}
}

// bearable tells for how long no client could write when sides changed, and fails where that was far more than is
// promised.
func (s *story) bearable(what string, pause time.Duration) {
	s.Helper()
	s.Logf("%s: no write for %.2f s", what, pause.Seconds())
	if err := outside.SidesChange.Judge(pause); err != nil {
		s.Errorf("%s: %v", what, err)
	}
}

// endsOfSessions fails where a write has seen anything but the end of its session, or that a side which is being closed
// only reads, in the moment before sessions end there.
func endsOfSessions(failed []outside.Failure) error {
	const moment = 2 * time.Second
	code := func(f outside.Failure) string { // "" where the server did not say why the session ended
		var said *pgconn.PgError
		if errors.As(f.Err, &said) {
			return said.Code
		}
		return ""
	}
	ended := func(f outside.Failure) bool { return code(f) == "" || strings.HasPrefix(code(f), "57P") }
	for _, f := range failed {
		closing := code(f) == "25006" && slices.ContainsFunc(failed, func(end outside.Failure) bool {
			return ended(end) && !end.At.Before(f.At) && end.At.Sub(f.At) <= moment
		})
		if !ended(f) && !closing {
			return fmt.Errorf("a write saw an error not for the end of its session: %w; all: %s", f.Err, listed(failed))
		}
	}
	return nil
}

// listed are failures in their order, each with its time.
func listed(failed []outside.Failure) string {
	var all []string
	for _, f := range failed {
		all = append(all, fmt.Sprintf("%s %v", f.At.Format("05.000"), f.Err))
	}
	return strings.Join(all, "; ")
}

// items is a table with an identity column in a database, and a sequence.
type items struct {
	access outside.Access
	ticket int64
}

// makeItems makes both. Each row says which major version has written it.
func (s *story) makeItems(access outside.Access) items {
	s.Helper()
	i := items{access: access.Patient()}
	must(s.T, i.access.Do(s.ctx, "CREATE SEQUENCE tickets; "+
		"CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, major int NOT NULL)"))
	i.add(s, 10)
	return i
}

// add adds rows in one transaction, and expects the sequence to go on.
func (i *items) add(s *story, rows int) {
	s.Helper()
	must(s.T, i.access.Do(s.ctx, fmt.Sprintf("INSERT INTO items (major) SELECT current_setting('server_version_num')"+
		"::int / 10000 FROM generate_series(1, %d)", rows)))
	text, err := i.access.Ask(s.ctx, "SELECT nextval('tickets')")
	must(s.T, err)
	was := i.ticket
	if _, err := fmt.Sscan(text, &i.ticket); err != nil || i.ticket <= was {
		s.Errorf("the sequence in %s is at %s after %d, %v", i.access.Database, text, was, err)
	}
}

// expect expects so many rows of each major version.
func (i *items) expect(s *story, want string) {
	s.Helper()
	got, err := i.access.Ask(s.ctx, `SELECT string_agg(major || ':' || n, ' ' ORDER BY major)
		FROM (SELECT major, count(*) AS n FROM items GROUP BY major) AS t`)
	if err != nil || got != want {
		s.Errorf("items in %s has %q, want %q, %v", i.access.Database, got, want, err)
	}
}

// queryTraces lists what a link could leave in a database, and on the server.
const queryTraces = `SELECT string_agg(x, ', ' ORDER BY x) FROM (
	SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^(pg_toast|pg_temp|toban$)'
	UNION ALL SELECT 'event trigger ' || evtname FROM pg_event_trigger
	UNION ALL SELECT 'publication ' || pubname FROM pg_publication
	UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
	UNION ALL SELECT 'origin ' || roname FROM pg_replication_origin
	UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE slot_type = 'logical'
	UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname !~ '^pg_'
	UNION ALL SELECT 'database ' || datname FROM pg_database) AS t (x)`

// traces are what the primary of a SampleDB lists in some databases, and in the one of the superuser.
func (s *story) traces(name string, databases ...string) string {
	s.Helper()
	var all []string
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		all = nil
		for _, database := range append([]string{"postgres"}, databases...) {
			found, err := s.Kubectl(ctx, "exec", db.Status.Primary, "--", "psql", "-U", "postgres", "-d", database,
				"-XAtc", queryTraces)
			if err != nil {
				return err
			}
			all = append(all, database+": "+found)
		}
		return nil
	})
	return strings.Join(all, "")
}

// kindsOfSides are those of which a second side has objects.
const kindsOfSides = "sampledb,statefulset,pod,pvc,secret,configmap,service,lease,job"

// noSecondSide waits until nothing is left of the second side, and the databases list what they did before.
func (s *story) noSecondSide(name, before string, databases ...string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		all, err := s.Kubectl(ctx, "get", kindsOfSides, "-o", "name")
		if err != nil {
			return err
		}
		var left []string
		for _, object := range strings.Fields(all) {
			if strings.Contains(object, naming.Green(name)) || strings.Contains(object, naming.SidesJob(name, "")) {
				left = append(left, object)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("of the second side there is still %v", left)
		}
		return nil
	})
	if after := s.traces(name, databases...); after != before {
		s.Errorf("the databases listed\n%s\nand now\n%s", before, after)
	}
	pods, err := s.Pods(s.ctx, name)
	must(s.T, err)
	for _, pod := range pods { // a standby has copies of slots
		s.until(func(context.Context) error {
			left, err := s.inside(pod.Name, "SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'logical'")
			if err == nil && left != "" {
				err = fmt.Errorf("%s still has the slots %s", pod.Name, left)
			}
			return err
		})
	}
}
