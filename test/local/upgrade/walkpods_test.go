package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/work/bluegreen"
)

// stand is the server of a side, which can be killed at any moment, and is started again as its agent does.
type stand struct {
	*instance
	name, address string
	// lines are settings that the agent would not write.
	lines   string
	mutex   sync.Mutex
	process *postgres.Process
	gone    bool
}

// stand has the server of a side run for the Pods and for clients.
func (w *walk) stand(i *instance, name string, authority *pki.Authority, lines string) *stand {
	w.Helper()
	st := &stand{instance: i, name: name, lines: "fsync = off\nwal_retrieve_retry_interval = 500ms\n" + lines,
		address: map[string]string{"blue": blueAddress, "green": greenAddress}[name]}
	w.dress(i, st.address, authority)
	w.closed(st, true)
	st.begin()
	w.Cleanup(st.end)
	return st
}

// settings are those of a server. What is large to decode is sent while it is under way.
func walkSettings(closed bool) postgres.Settings {
	return postgres.Settings{Name: "db-0", Closed: closed, HBA: []string{"local replication postgres peer map=local"},
		Parameters: map[string]string{"max_prepared_transactions": "5", "logical_decoding_work_mem": "64kB"}}
}

// begin starts it. The mutex is held, or nobody else knows of it yet.
func (st *stand) begin() {
	process, err := st.Start(context.Background(), &testLog{T: st.T})
	if err == nil {
		st.process = process
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		err = process.Ready(ctx)
	}
	if err != nil {
		st.Errorf("the server of %s does not start: %v", st.name, err)
	}
}

// crash has it die at once, and starts it again.
func (st *stand) crash() {
	st.mutex.Lock()
	defer st.mutex.Unlock()
	if st.gone {
		return
	}
	st.process.Stop(context.Background(), postgres.StopImmediate)
	st.begin()
}

// end stops it for good.
func (st *stand) end() {
	st.mutex.Lock()
	defer st.mutex.Unlock()
	if !st.gone {
		st.gone = true
		st.process.Stop(context.Background(), postgres.StopFast)
	}
}

// kills are what becomes of a server, or of its processes of some kinds.
var kills = []struct {
	what, of string
}{
	{"the server", ""},
	{"who applies", "backend_type ~ '^logical replication'"},
	{"who sends", "backend_type = 'walsender'"},
	{"a process of the server", ""},
}

// kill does one of them. It fails nothing: the server may be starting.
func (st *stand) kill(n int) {
	switch kills[n].what {
	case "the server":
		st.crash()
		return
	case "a process of the server":
		st.mutex.Lock()
		defer st.mutex.Unlock()
		if pid := st.number("select pid from pg_stat_activity where backend_type in ('walsender', " +
			"'logical replication apply worker', 'walwriter') order by backend_type limit 1"); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			for range 100 { // until the server has come to know, and has recovered
				time.Sleep(100 * time.Millisecond)
				if st.number("select 1") == 1 {
					break
				}
			}
		}
		return
	}
	st.number("select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity where " + kills[n].of +
		") ended")
}

// number asks as one of ours, and is 0 where the server does not answer.
func (st *stand) number(query string) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := st.side(st.name).Connect(ctx, "postgres")
	if err != nil {
		return 0
	}
	defer hangUp(conn)
	_ = conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&n)
	return n
}

// closed closes a side to clients, or opens it, by its settings.
func (w *walk) closed(st *stand, closed bool) {
	w.Helper()
	if !st.reads(walkSettings(closed)) {
		return
	}
	w.until("the server of "+st.name+" has read its settings", func() bool {
		conn, err := st.dial("postgres")
		if err != nil {
			return false
		}
		defer hangUp(conn)
		var is bool
		err = conn.QueryRow(w.ctx, "select current_setting('default_transaction_read_only')::bool").Scan(&is)
		return err == nil && is == closed
	})
}

// reads has a server read other settings, and says whether it runs.
func (st *stand) reads(settings postgres.Settings) (runs bool) {
	st.mutex.Lock()
	defer st.mutex.Unlock()
	must(st, st.Configure(settings))
	st.configure(st.lines)
	if st.process == nil {
		return false
	}
	must(st, st.process.Reload())
	return true
}

// empties ends the clients of a closed side until there is none, as its agent does.
func (w *walk) empties(st *stand) {
	w.Helper()
	w.until("the clients of "+st.name+" have ended", func() bool {
		session, err := st.Connect(w.ctx)
		if err != nil {
			return false
		}
		defer session.Close()
		n, err := session.EndClients(w.ctx)
		return err == nil && n == 0
	})
}

// work runs the Pod of a step until it has an answer, whatever dies meanwhile: it may be cut off itself, and so may
// both servers. It returns "" when the step is done, or which of some reasons is in the way.
func (w *walk) work(step protocol.SidesWork, fromGreen bool, reasons ...string) (reason string) {
	w.Helper()
	for undisturbed, begun := 0, time.Now(); ; {
		if w.Failed() || time.Since(begun) > deadline {
			w.Fatalf("%s does not end", step)
		}
		ctx, disturbed, calm := w.disturb()
		r, err := w.try(ctx, step, fromGreen)
		disturbed = disturbed || ctx.Err() != nil
		calm()
		reason := ""
		if len(r.Refusals) > 0 {
			reason = r.Refusals[0].Reason
		}
		switch {
		case slices.Contains(reasons, reason):
			w.note("%s: in the way is %s", step, reason)
			return reason
		case reason != "" && w.passes(r.Refusals[0], disturbed):
		case r.Broken != "", reason != "", len(r.Differences) > 0:
			w.Fatalf("%s: %+v", step, r)
		case err == nil && r.Error == "" && r.Done:
			w.note("%s is done", step)
			w.at(r.Position)
			return ""
		case !disturbed:
			if undisturbed++; undisturbed > 3 {
				w.Fatalf("%s fails, and nobody has disturbed it: %v: %+v", step, err, r)
			}
		}
		w.note("%s is begun again (something was killed: %t): %s %.200s", step, disturbed, reason, r.Error)
		time.Sleep(50 * time.Millisecond)
	}
}

// at notes the position of the copy that is to be made.
func (w *walk) at(position string) {
	if position != "" {
		w.settings.Position = position
	}
}

// passes says of a refusal that it is over in a moment: a client was between the two phases of a commit, or a server
// was killed in the moment in which it made a slot, which a person drops then (docs/bluegreen.md).
func (w *walk) passes(f protocol.UpgradeFinding, disturbed bool) bool {
	if disturbed && (f.Reason == change.NameTaken || f.Reason == major.LogicalSlots) {
		dropped := 0
		for _, st := range w.stands() {
			dropped += st.number(fmt.Sprintf(`select count(*) from (select pg_drop_replication_slot(slot_name)
				from pg_replication_slots where slot_name ~ '^toban_to_' and strpos(%s, slot_name) > 0) dropped`,
				sql.Literal(f.Message)))
		}
		w.note("%d slots are dropped that were made when a server died", dropped)
		return dropped > 0
	}
	return f.Reason == major.PreparedTransactions
}

// disturb has a Pod cut off after a while, and something killed, or not. The Pod is not over before calm.
func (w *walk) disturb() (ctx context.Context, disturbed bool, calm func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	if !w.kills {
		return ctx, false, cancel
	}
	if w.one(3) {
		stop := time.AfterFunc(w.upTo(900*time.Millisecond), cancel)
		cancelled := cancel
		cancel = func() { stop.Stop(); cancelled() }
	}
	disturbed, wait := w.strike()
	return ctx, disturbed, func() { wait(); cancel() }
}

// strike has something killed in a moment, or not, and says how to wait until it is there again.
func (w *walk) strike() (strikes bool, wait func()) {
	if !w.kills || !w.one(3) {
		return false, func() {}
	}
	after, n, victims := w.upTo(600*time.Millisecond), w.rand.IntN(len(kills)), w.stands()
	victim := victims[w.rand.IntN(len(victims))]
	w.note("%s of %s is killed after %s", kills[n].what, victim.name, after)
	var group sync.WaitGroup
	group.Go(func() { time.Sleep(after); victim.kill(n) })
	return true, group.Wait
}

// stands are the servers that there are.
func (w *walk) stands() []*stand {
	if w.greenStand == nil {
		return []*stand{w.blueStand}
	}
	return []*stand{w.blueStand, w.greenStand}
}

// makeGreen makes the second side, of a major version. It can't be made where the copy has a transaction that was
// prepared at the position: pg_upgrade refuses that.
func (w *walk) makeGreen(to int) bool {
	w.Helper()
	position, err := wal.ParseLSN(w.settings.Position)
	must(w, err)
	w.copyOf(position)
	if prepared := w.sides.green.ask("postgres", "select string_agg(gid, ' ') from pg_prepared_xacts"); prepared != "" {
		w.note("%s was prepared at the position", prepared)
		w.counts["prepared at the position"]++
		w.stopGreen(syscall.SIGINT)
		return false
	}
	w.copyMoves(to)
	w.stopGreen(syscall.SIGINT)
	if to != w.blue.Programs.Major {
		w.takeOver(w.sides.green, to)
	}
	w.greenStand = w.stand(w.sides.green, "green", w.pods.green, "")
	w.settings.Green = protocol.SidesOf{Hosts: []string{greenAddress}, Given: string(w.house.authority.CertPEM())}
	w.note("green is made, of PostgreSQL %d", to)
	return true
}

// takeOver puts the data of the new version into the place of the old one, as an agent does.
func (w *walk) takeOver(i *instance, to int) {
	w.Helper()
	restored := filepath.Join(i.Data.Volume, "restore")
	must(w, os.RemoveAll(i.Data.Path()))
	must(w, os.Rename(filepath.Join(restored, "data"), i.Data.Path()))
	must(w, os.RemoveAll(restored))
	i.Programs = programs(w.T, to)
}

// archiving are the settings of blue, with an archive of its version.
func (w *walk) archiving() string {
	return fmt.Sprintf("archive_mode = on\narchive_command = 'cp %%p %[1]s/part && mv %[1]s/part %[1]s/%%f'\n",
		w.archive)
}

// upgradeBlue moves blue's own data to the version of green, while green serves.
func (w *walk) upgradeBlue() {
	w.Helper()
	to := w.greenStand.Programs.Major
	if to != w.blue.Programs.Major {
		w.blue.forgetVersions()
	}
	w.blueStand.end()
	if to != w.blue.Programs.Major {
		o, _ := w.blue.process(to, protocol.MethodLink, "", false)
		if o.Error != "<nil>" {
			w.Fatal(o.Error)
		}
		w.takeOver(w.blue, to)
		w.archive = w.TempDir()
	}
	w.blueStand = w.stand(w.blue, "blue", w.house.authority, w.archiving())
	w.note("blue's own data is of PostgreSQL %d", to)
}

// change changes sides, and says whether it was put off. Then the side that serves is opened again.
func (w *walk) change(from, to *stand) (changed bool) {
	w.Helper()
	ctx, disturbed, calm := w.disturb()
	defer calm()
	pod := w.handOver(ctx, from == w.greenStand)
	if !pod.waits() {
		pod.goes()
		return w.putOff(read[protocol.SidesResult](w.house), disturbed || ctx.Err() != nil)
	}
	w.leads(nil)
	w.closed(from, true)
	w.empties(from)
	struck, wait := w.strike()
	told := &protocol.SidesResult{}
	if err := pod.begin(id); err == nil || ctx.Err() == nil {
		must(w, err)
		told = pod.told()
	}
	wait()
	cut := ctx.Err() != nil
	calm()
	pod.goes()
	if told == nil || !told.Done { // it has ended, or was cut off
		r := read[protocol.SidesResult](w.house)
		told = &r
	}
	if !told.Done || told.Error != "" || len(told.Refusals) > 0 {
		w.closed(from, false)
		w.leads(from)
		return w.putOff(*told, disturbed || struck || cut)
	}
	w.note("handed over from %s to %s in %.2f s", from.name, to.name, told.Seconds)
	w.opens(from, to, disturbed || struck)
	return true
}

// opens looks whether both sides are the same when all was handed over, and has the other one serve.
func (w *walk) opens(from, to *stand, struck bool) {
	w.Helper()
	if w.kills && w.one(4) {
		w.note("%s is killed before it is opened", to.name)
		to.crash()
	}
	w.same(from, to, struck)
	w.hasAll(to)
	w.closed(to, false)
	w.leads(to)
}

// putOff says that a change was put off, where something explains that.
func (w *walk) putOff(r protocol.SidesResult, disturbed bool) bool {
	w.Helper()
	w.note("the change of sides is put off (something was killed: %t): %v %.200s", disturbed, r.Refusals, r.Error)
	switch {
	case r.Broken != "":
		w.Fatalf("the link is broken: %s", r.Broken)
	case len(r.Refusals) > 0 && !w.passes(r.Refusals[0], disturbed) &&
		r.Refusals[0].Reason != bluegreen.ClientsThere:
		w.Fatalf("the change is refused: %+v", r.Refusals)
	case len(r.Refusals) == 0 && !disturbed && !strings.Contains(r.Error, "deadline exceeded"):
		w.Fatalf("the change fails, and nobody has disturbed it: %+v", r)
	}
	return false
}
