package upgrade_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/bluegreen"
)

var walkFor = flag.Duration("walk", 2*time.Minute, "for how long TestLongSidesWalk goes on")

// walksFound are seeds of walks in which something was found. A seed decides what is done, and what is killed after how
// long; it does not decide how far anything is by then.
var walksFound = []uint64{
	7, // a slot that was made while a table was emptied was noted by nobody, and each upgrade was refused from then on
}

// A database whose clients use what PostgreSQL has goes through upgrades that are begun, cancelled, gone on with, taken
// back and brought home, by a walk at random, while servers, the link and Pods are killed. Whenever sides change, both
// are the same row for row, sequence for sequence and right for right, and whoever serves has all that was
// acknowledged, and nothing twice. TestLongThePodsOfSidesDoTheirWork and its neighbours have the single steps.
func TestLongSidesWalk(t *testing.T) {
	seeds := append([]uint64{uint64(time.Now().UnixNano())}, walksFound...)
	if text := os.Getenv("TOBAN_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("TOBAN_SEED=%d", seed), func(t *testing.T) {
			newWalk(t, seed).live(*walkFor / time.Duration(len(seeds)))
		})
	}
}

// walk is one from a seed.
type walk struct {
	*pods
	rand                  *rand.Rand
	blueStand, greenStand *stand
	writers               []*writer
	migrator              *migrator
	group                 sync.WaitGroup
	end                   context.CancelFunc
	// kills says that something may be killed.
	kills bool
	// roles and persons are how many there were.
	roles, persons int
	begun          time.Time
	counts         map[string]int

	mutex sync.Mutex
	// serving is the side to which clients are led, nil for none; generation changes with it.
	serving    *stand
	generation int
	steps      []string
}

func newWalk(t *testing.T, seed uint64) *walk {
	t.Helper()
	s := newBlue(t, 17)
	ctx, cancel := context.WithTimeout(t.Context(), *walkFor+2*deadline)
	t.Cleanup(cancel)
	s.ctx = ctx
	s.blue.do("shop", walkSchema)
	must(t, os.RemoveAll(s.backup))
	w := &walk{pods: s.pods(), rand: rand.New(rand.NewPCG(seed, 0)), begun: time.Now(), counts: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Errorf("TOBAN_SEED=%d: these were the steps:\n%s", seed, strings.Join(w.steps, "\n"))
		}
	})
	w.stopBlue(syscall.SIGINT)
	w.blueStand = w.stand(w.blue, "blue", w.house.authority, w.archiving())
	w.closed(w.blueStand, false)
	w.leads(w.blueStand)
	w.migrator = &migrator{walk: w, wants: map[string]string{}}
	clients, end := context.WithCancel(t.Context())
	w.end = end
	t.Cleanup(func() { end(); w.leads(nil); w.group.Wait() })
	for id := range writers {
		c := &writer{walk: w, id: id}
		w.writers = append(w.writers, c)
		w.group.Go(func() { c.live(clients) })
	}
	return w
}

// note writes down a step.
func (w *walk) note(format string, args ...any) {
	step := fmt.Sprintf("%6.2fs ", time.Since(w.begun).Seconds()) + fmt.Sprintf(format, args...)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.steps = append(w.steps, step)
}

// one says yes to one of so many.
func (w *walk) one(of int) bool { return w.rand.IntN(of) == 0 }

func (w *walk) upTo(most time.Duration) time.Duration {
	return time.Duration(w.rand.IntN(int(most/time.Millisecond))) * time.Millisecond
}

// leads leads clients to a side.
func (w *walk) leads(to *stand) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.serving = to
	w.generation++
}

func (w *walk) serves(generation int) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.serving != nil && w.generation == generation
}

// connect opens a session of a client with the side that serves, nil where there is none now.
func (w *walk) connect(role, password string) (*pgx.Conn, int) {
	w.mutex.Lock()
	to, generation := w.serving, w.generation
	w.mutex.Unlock()
	if to != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=shop sslmode=require",
			to.address, w.port, role, password))
		switch {
		case err == nil && w.serves(generation):
			return conn, generation
		case err == nil:
			hangUp(conn)
		case !excused(err):
			w.Errorf("connect to %s: %v", to.name, err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	return nil, 0
}

// live walks until the time is over, and looks at the end.
func (w *walk) live(most time.Duration) {
	w.Helper()
	w.written(10)
	for round := 1; time.Since(w.begun) < most; round++ {
		w.note("round %d", round)
		w.round()
		w.written(10)
	}
	w.end()
	w.group.Wait()
	if w.Failed() {
		w.FailNow()
	}
	w.hasAll(w.blueStand)
	w.noTrace()
	total := 0
	for _, c := range w.writers {
		total += c.last
	}
	w.Logf("%d transactions, %d changes of the schema, and %v:\n%s", total, w.migrator.acknowledged, w.counts,
		strings.Join(w.steps, "\n"))
}

// written waits until each client has written some more.
func (w *walk) written(more int) {
	w.Helper()
	for _, c := range w.writers {
		at := func() int {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			return c.last
		}
		begin := at()
		w.until(fmt.Sprintf("client %d writes", c.id), func() bool { return at() >= begin+more || w.Failed() })
	}
	if w.Failed() {
		w.FailNow()
	}
}

// round is one upgrade, until there is one side again: cancelled somewhere, taken back, or brought home.
func (w *walk) round() {
	w.Helper()
	w.kills = false
	w.alone()
	w.kills = true
	if !w.there() {
		w.note("it is cancelled")
		w.counts["cancelled"]++
		w.cancels()
		return
	}
	w.settles()
	w.migrator.held()
	w.written(10)
	if w.one(2) {
		w.note("it comes home")
		w.counts["home"]++
		w.work(protocol.SidesLeave, true)
		w.written(5)
		w.upgradeBlue()
		w.work(protocol.SidesReturn, true)
	} else {
		w.note("it is taken back")
		w.counts["back"]++
	}
	w.work(protocol.SidesFollow, true)
	w.work(protocol.SidesCompare, true)
	w.work(protocol.SidesPrepare, true)
	if !w.moves(true) {
		w.Fatal("sides do not change back")
	}
	w.kills = false // green has its last word if it is there
	w.commitsClosed(w.greenStand)
	w.cancels()
	w.carried(w.blueStand)
}

// there goes on until green serves, and says whether it does. Else it is to be cancelled: because that is wanted, or
// because something is in the way that stays.
func (w *walk) there() bool {
	w.Helper()
	to := w.blue.Programs.Major
	if to == 17 && w.one(2) {
		to = 18
	}
	if !w.publishes() || w.one(8) || !w.makeGreen(to) {
		return false
	}
	w.work(protocol.SidesFollow, false)
	if w.one(8) || w.work(protocol.SidesCompare, false, bluegreen.SchemaChanged) != "" {
		return false
	}
	w.work(protocol.SidesPrepare, false)
	w.inTheWay()
	return !w.one(8) && w.moves(false)
}

// alone is what happens while there is one side: the schema changes, rights are given, and what can't follow is
// refused. Then a backup is taken, of which the second side is made.
func (w *walk) alone() {
	w.Helper()
	w.settings.Position, w.settings.Green = "", protocol.SidesOf{}
	w.migrates(1 + w.rand.IntN(4))
	if w.one(2) {
		w.grant()
	}
	if w.one(2) {
		w.note("the server is killed")
		w.blueStand.crash()
	}
	for _, r := range refused {
		if !w.one(3) {
			continue
		}
		w.blue.do("shop", r.make)
		if got := w.work(protocol.SidesPublish, false, r.reason); got != r.reason {
			w.Fatalf("after %q it is not refused", r.make)
		}
		w.blue.do("shop", r.undo)
		w.counts["refused"]++
	}
	w.backup = filepath.Join(w.TempDir(), "data")
	w.blue.backUp(w.backup, "none")
}

// refused is what does not follow, and is no change of the schema.
var refused = []struct{ make, undo, reason string }{
	{"select lo_create(4711)", "select lo_unlink(4711)", change.LargeObjects},
	{"begin;\ninsert into app.parked values (-1);\nprepare transaction 'open'", "rollback prepared 'open'",
		major.PreparedTransactions},
	{"select pg_replication_origin_create('sink')", "select pg_replication_origin_drop('sink')",
		change.ReplicationOrigins},
	{"create database shapes is_template true template template0",
		"alter database shapes is_template false;\ndrop database shapes", change.TemplateDatabases},
}

// differing is what is refused only while there are two sides, besides what is refused then too.
var differing = []struct{ make, undo, reason string }{
	{"create role other", "drop role other", bluegreen.RolesDiffer},
	{"alter role app set work_mem = '9MB'", "alter role app reset work_mem", bluegreen.RolesDiffer},
	{"grant reader to app", "revoke reader from app", bluegreen.RolesDiffer},
	{"grant set on parameter log_statement to reader", "revoke set on parameter log_statement from reader",
		bluegreen.RolesDiffer},
}

// migrates changes the schema some times.
func (w *walk) migrates(times int) {
	w.Helper()
	conn, _ := w.connect("app", "secret")
	if conn == nil {
		w.Fatal("the side that serves takes no session")
	}
	defer hangUp(conn)
	for range times {
		must(w, w.migrator.migrate(conn))
	}
}

// publishes makes what the second side reads, perhaps while the schema changes, and says whether that can be.
func (w *walk) publishes() bool {
	w.Helper()
	if !w.one(3) {
		return w.work(protocol.SidesPublish, false) == ""
	}
	w.note("the schema changes meanwhile")
	ctx, end := context.WithCancel(w.ctx)
	var group sync.WaitGroup
	group.Go(func() { w.migrator.live(ctx) })
	time.Sleep(w.upTo(200 * time.Millisecond))
	stop := time.AfterFunc(w.upTo(time.Second), end)
	reason := w.work(protocol.SidesPublish, false, bluegreen.SchemaChanged, bluegreen.TablesDiffer)
	stop.Stop()
	end()
	group.Wait()
	return reason == ""
}

// inTheWay makes what keeps sides from changing, and takes it back.
func (w *walk) inTheWay() {
	w.Helper()
	w.kills = false
	for _, r := range append(refused, differing...) {
		if !w.one(6) {
			continue
		}
		w.blue.do("shop", r.make)
		if r.reason == bluegreen.RolesDiffer {
			w.isUndone(r.undo)
		} else if got := w.work(protocol.SidesCompare, false, r.reason); got != r.reason {
			w.Fatalf("after %q nothing is in the way", r.make)
		} else {
			w.blue.do("shop", r.undo)
		}
		w.counts["refused"]++
	}
	w.blue.do("postgres", fmt.Sprintf("alter role reader password '%d'", w.rand.Uint64())) // is carried
	if w.one(6) {
		w.migrates(1)
		if w.work(protocol.SidesCompare, false, bluegreen.SchemaChanged) == "" {
			w.Fatal("a change of the schema is not in the way")
		}
	}
	w.kills = true
}

// isUndone undoes what differs while a Pod waits for that.
func (w *walk) isUndone(undo string) {
	w.Helper()
	for begun := time.Now(); ; { // a client may be between the two phases of a commit, which is told first
		h := w.runs(w.ctx, protocol.SidesCompare, false)
		waits := h.says("this differs between the sides")
		if waits {
			w.blue.do("shop", undo)
		}
		err := <-h.ended
		r := read[protocol.SidesResult](w.house)
		if waits {
			w.note("%s: what differs is undone: %v, %s", protocol.SidesCompare, err, r.Error)
			if slices.ContainsFunc(r.Refusals, func(f protocol.UpgradeFinding) bool {
				return f.Reason == bluegreen.RolesDiffer
			}) {
				w.Fatalf("after %q it is in the way still: %+v", undo, r)
			}
			return
		}
		if time.Since(begun) > deadline {
			w.Fatalf("nobody waits for %q: %v: %+v", undo, err, r)
		}
	}
}

// moves changes sides, if that is put off again and again, and says whether nothing is in the way.
func (w *walk) moves(fromGreen bool) bool {
	w.Helper()
	from, to := w.blueStand, w.greenStand
	if fromGreen {
		from, to = to, from
	}
	if noted, err := bluegreen.Noted(w.ctx, from.side(from.name)); err != nil || len(noted) > 0 {
		must(w, err)
		return false
	}
	for try := range 10 {
		w.kills = try < 3
		if w.change(from, to) {
			w.kills = true
			w.counts["changes"]++
			return true
		}
		w.written(3)
	}
	w.Fatal("the change of sides is put off all the time")
	return false
}

// settles has blue follow, with what a person has committed there after it was closed.
func (w *walk) settles() {
	w.Helper()
	w.commitsClosed(w.blueStand)
	w.work(protocol.SidesSettle, true)
	w.carried(w.greenStand)
}

// commitsClosed has a superuser commit something on a closed side, from which the other one has all that was before.
func (w *walk) commitsClosed(on *stand) {
	w.Helper()
	w.persons++
	on.do("shop", fmt.Sprintf("set default_transaction_read_only = off;\ninsert into app.parked values (%d)",
		w.persons))
	w.note("a person commits on %s", on.name)
}

// carried looks whether that has come along.
func (w *walk) carried(to *stand) {
	w.Helper()
	if got := to.ask("shop", fmt.Sprintf("select count(*) from app.parked where n between 1 and %d", w.persons)); got !=
		strconv.Itoa(w.persons) {
		w.Fatalf("of %d last words of closed sides %s has %s", w.persons, to.name, got)
	}
}

// cancels removes the second side, and all that there is of it.
func (w *walk) cancels() {
	w.Helper()
	w.work(protocol.SidesCancel, false)
	if w.greenStand != nil {
		w.greenStand.end()
		must(w, os.RemoveAll(w.greenStand.Data.Volume))
		w.greenStand = nil
	}
	w.noTrace()
}

// noTrace looks whether anything of a link is left on blue.
func (w *walk) noTrace() {
	w.Helper()
	for _, database := range []string{"postgres", "shop"} {
		if got := w.blue.ask(database, `(select count(*) from pg_replication_slots where slot_type = 'logical') +
			(select count(*) from pg_publication) + (select count(*) from pg_subscription) +
			(select count(*) from pg_replication_origin) + (select count(*) from pg_event_trigger) +
			(select count(*) from pg_roles where rolname = 'toban_link') +
			(select count(*) from pg_namespace where nspname = 'toban_sides')`); got != "0" {
			w.Fatalf("%s things of the links are left in the database %s", got, database)
		}
	}
}
