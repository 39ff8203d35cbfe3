package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/drill"
	"toban.dev/test/outside"
)

// orderFault orders a fault of an instance, as the operator does for a FaultDrill.
func (c *cluster) orderFault(name string, order protocol.FaultOrder) error {
	ordinal, _ := naming.Ordinal(name)
	_, err := c.operator.Fault(c.Context(), c.host(ordinal), order)
	return err
}

// filling says whether a drill's file is on the volume of an instance.
func (c *cluster) filling(name string) bool {
	_, err := os.Stat(filepath.Join(c.disk(name), "toban", "faultdrill"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Fatal(err)
	}
	return err == nil
}

// A drill fills the volume of the primary: that takes no writes, goes on serving those who read, and nothing ends. It
// is over when its time is over, by order, and when the agent begins anew; writes are taken again each time.
func TestADrillFillsAVolume(t *testing.T) {
	const size = 512 << 20
	c, leader := onSmallVolumes(t)
	before := c.postmaster(leader)
	fill := protocol.FaultOrder{Drill: "d", Fault: protocol.FaultFillVolume, For: protocol.MaxFault, Volume: size / 2}
	if err := c.orderFault(leader, fill); err == nil || !strings.Contains(err.Error(), "not the volume's own") {
		t.Errorf("a file system of others is filled: %v", err)
	}
	fill.Volume = size
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.await(leader, "a volume that a drill has filled", func(s protocol.Status) bool {
		return s.Room != nil && s.Room.Drill > size/2
	})
	c.must(c.orderFault(leader, protocol.FaultOrder{Drill: "d", Fault: protocol.FaultUndo}))
	if c.filling(leader) {
		t.Error("its file is there after the order to undo it")
	}
	c.written(leader)

	fill.For = 5 * time.Second
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.written(leader)
	if c.filling(leader) {
		t.Error("its file is there after its time")
	}
	if now := c.postmaster(leader); now != before || c.whole() != leader {
		t.Errorf("the server was started again: %d, before %d", now, before)
	}

	fill.For = protocol.MaxFault
	c.must(c.orderFault(leader, fill))
	c.refused(leader)
	c.kill(leader, syscall.SIGKILL)
	if !c.filling(leader) {
		t.Error("its file is gone with the agent")
	}
	c.startOne(leader)
	next := c.whole()
	if c.filling(leader) {
		t.Error("its file is there in another life of the agent")
	}
	c.written(next)
}

// awaitReplay waits until the replay of a standby is paused, or is not.
func (c *cluster) awaitReplay(name string, paused bool) {
	c.Helper()
	want := map[bool]string{true: "paused", false: "not paused"}[paused]
	c.awaitQuery(name, "select pg_get_wal_replay_pause_state()", want)
}

// A drill pauses the replay of a standby: what is read there is old, and commits go on. It is over when its time is
// over and by order.
func TestADrillPausesReplay(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.whole()
	standby := c.standby(leader)
	pauses := protocol.FaultOrder{Drill: "d", Fault: protocol.FaultPauseReplay, For: protocol.MaxFault}
	if err := c.orderFault(leader, pauses); err == nil || !strings.Contains(err.Error(), "is the primary") {
		t.Errorf("the replay of a primary is paused: %v", err)
	}
	c.exec(leader, "create table seen (n int)")
	c.awaitCaughtUp(leader, standby)
	c.must(c.orderFault(standby, pauses))
	c.awaitReplay(standby, true)
	c.exec(leader, "insert into seen values (1)")
	if got, err := c.query(standby, "select count(*)::text from seen"); got != "0" {
		t.Errorf("a standby whose replay is paused has %s rows, %v", got, err)
	}
	c.must(c.orderFault(standby, protocol.FaultOrder{Drill: "d", Fault: protocol.FaultUndo}))
	c.awaitReplay(standby, false)
	c.awaitQuery(standby, "select count(*)::text from seen", "1")
	pauses.For = 3 * time.Second
	c.must(c.orderFault(standby, pauses))
	c.awaitReplay(standby, true)
	c.awaitReplay(standby, false)
}

// A drill of several faults: the replay of a standby is paused, and the primary's server is killed meanwhile. There is
// an election, nothing is lost, and what lasted can be undone at all instances, whatever they are by then. A fault that
// can't be ordered beside another says why.
func TestADrillOfSeveralFaults(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.whole()
	standby := c.standby(leader)
	order := func(name string, fault protocol.Fault) error {
		return c.orderFault(name, protocol.FaultOrder{Drill: "d", Fault: fault, For: protocol.MaxFault})
	}
	w := c.write3()
	w.goesOn()
	c.must(order(standby, protocol.FaultPauseReplay))
	c.awaitReplay(standby, true)
	for fault, words := range map[protocol.Fault]string{
		protocol.FaultHangServer: "a server that hangs can't be told", protocol.FaultPauseReplay: "lasts already",
		protocol.FaultCutAPI: "no Kubernetes API around this instance",
	} {
		if err := order(standby, fault); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s beside a pause: %v", fault, err)
		}
	}
	c.must(order(leader, protocol.FaultKillServer))
	next := c.leader(leader)
	w.goesOn()
	for _, name := range c.names() {
		c.must(order(name, protocol.FaultUndo))
	}
	c.whole()
	for _, name := range c.names() {
		if name != next {
			c.awaitReplay(name, false)
		}
	}
	w.goesOn()
	w.check(outside.Lost)
}

// cutArchive has instances not reach the store of the archive, for as long as a drill may.
func (c *cluster) cutArchive(names ...string) {
	c.Helper()
	for _, name := range names {
		c.must(c.orderFault(name, protocol.FaultOrder{
			Drill: "d", Fault: protocol.FaultCutArchive, For: protocol.MaxFault,
		}))
	}
}

// A drill in which the store of the archive gives no instance an answer, and the primary's server is killed meanwhile:
// commits go on, nothing gets into the archive, and when the store is back all of both timelines does.
func TestADrillOfTheArchive(t *testing.T) {
	t.Parallel()
	c, _, archive := inS3(t, nil)
	leader := c.whole()
	w := c.write3()
	w.goesOn()
	c.awaitArchived(leader)
	c.cutArchive(c.names()...)
	text, err := c.query(leader, "select pg_current_wal_flush_lsn()::text")
	c.must(err)
	end, err := wal.ParseLSN(text)
	c.must(err)
	c.exec(leader, "select pg_switch_wal()")
	w.goesOn()
	c.must(c.orderFault(leader, protocol.FaultOrder{Drill: "d", Fault: protocol.FaultKillServer}))
	next := c.leader(leader)
	w.goesOn()
	c.exec(next, "select pg_switch_wal()")
	w.goesOn()
	c.whole()
	if _, to, _ := c.coveredIn(archive); to > end {
		t.Errorf("the archive goes to %s, and the store was away from %s on", to, end)
	}
	if s := c.archiveStatus(next); s.Gap != "" {
		t.Errorf("the new primary says %+v", s)
	}
	for _, name := range c.names() {
		c.must(c.orderFault(name, protocol.FaultOrder{Drill: "d", Fault: protocol.FaultUndo}))
	}
	w.goesOn()
	w.check(outside.Lost)
	c.checkArchived(c.leader(), archive)
}

// While the store is away by a drill, the primary says so, WAL waits in its slot, and no more than that may keep. It is
// over when the agent begins anew. TestADrillOfTheArchive has a shorter one.
func TestLongADrillOfTheArchiveIsOverWithTheAgent(t *testing.T) {
	t.Parallel()
	const bound = 96
	c, _, archive := inS3(t, smallWAL(bound))
	leader := c.whole()
	c.awaitArchived(leader)
	stop, end := c.load(1<<20), c.watch(leader)
	c.cutArchive(leader)
	bad := c.await(leader, "not archiving", func(s protocol.Status) bool {
		return s.Archive != nil && s.Archive.Reason == protocol.ArchiveFailing
	})
	if !strings.Contains(bad.Archive.Error, "the way to the store of the archive is cut, by a FaultDrill") {
		t.Errorf("it says %s", bad.Archive.Error)
	}
	c.exec(leader, "select pg_switch_wal()", "checkpoint")
	c.await(leader, "behind", func(s protocol.Status) bool { return s.Archive.LagBytes > wal.SegmentSize })
	stop()
	seen := end()
	t.Logf("pg_wal had %d MiB at most; the archive was %d bytes behind", seen.walBytes>>20, seen.lagBytes)
	if seen.walBytes < int64(seen.lagBytes) || seen.walBytes > (bound+64+128)<<20 {
		t.Errorf("pg_wal had %d MiB", seen.walBytes>>20)
	}
	c.kill(leader, syscall.SIGKILL)
	c.startOne(leader)
	c.whole()
	c.sync() // the agent that was started anew has no archive in its file
	c.checkArchived(c.whole(), archive)
}

// The clients of a drill see how old standbys answer whose replay is paused, and write on.
func TestADrillMeasuresOldAnswers(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.whole()
	c.exec(leader, "create role app login password 'app'", "create database app owner app")
	way := func(name, of string) drill.Way {
		return drill.Way{Name: name, Connect: func(context.Context) (*pgx.Conn, error) { return c.app(of) }}
	}
	const lasts = 3 * time.Second
	options := drill.Options{
		Ways: []drill.Way{way("Service", leader)}, Schema: "toban_drill_x", Observe: 6 * time.Second,
		AbortAfter: time.Minute, Log: slog.New(slog.DiscardHandler),
		Steady: func() {
			c.must(c.orderFault(c.standby(leader), protocol.FaultOrder{Fault: protocol.FaultPauseReplay, For: lasts}))
		},
	}
	for _, name := range c.names() {
		options.Standbys = append(options.Standbys, way(name, name))
	}
	result, err := drill.Run(t.Context(), options)
	c.must(err)
	if len(result.Clients) != 2 || result.Clients[0].Lost != 0 {
		t.Fatalf("the result is %+v", result)
	}
	reads := result.Clients[1]
	t.Logf("who writes has seen %+v, who reads from standbys %+v", result.Clients[0], reads)
	if reads.Staleness < lasts/2 || reads.StaleReads == 0 || reads.StaleReads == reads.Reads {
		t.Errorf("who reads from standbys has seen %+v", reads)
	}
}

// A query of the user ends a drill as soon as it is true. It can't write, and one that can't be asked is told of before
// anything is broken.
func TestADrillIsGivenUpByAQuery(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	leader := c.whole()
	c.exec(leader, "create role app login password 'app'", "create database app owner app")
	conn, err := c.app(leader)
	c.must(err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "create schema shop; create table shop.failures (n int)")
	c.must(err)
	steady := func() {
		_, err := conn.Exec(t.Context(), "insert into shop.failures values (1)")
		c.must(err)
	}
	run := func(query string) (drill.Result, error) {
		return drill.Run(t.Context(), drill.Options{
			Ways: []drill.Way{{Name: "Service", Connect: func(context.Context) (*pgx.Conn, error) {
				return c.app(leader)
			}}},
			Schema: "toban_drill_x", Observe: deadline, AbortAfter: deadline, AbortWhen: query, Steady: steady,
			Log: slog.New(slog.DiscardHandler),
		})
	}
	for query, words := range map[string]string{
		"select true from shop.none":                                "relation \"shop.none\" does not exist",
		"insert into shop.failures values (1) returning true":       "read-only transaction",
		"select true; commit; insert into shop.failures values (1)": "multiple commands",
		"select 'yes'": "can't be used",
		"select true":  "is true before anything is broken",
	} {
		if result, err := run(query); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %+v, %v", query, result, err)
		}
	}
	result, err := run("select count(*) > 0 from shop.failures")
	c.must(err)
	if !result.Aborted || !result.ByQuery || result.Ended.Sub(result.Began) >= deadline ||
		result.Clients[0].Lost != 0 || result.Clients[0].Acknowledged == 0 {
		t.Errorf("the result is %+v", result)
	}
	var left int
	schemas := "select count(*) from pg_namespace where nspname like 'toban_drill%'"
	c.must(conn.QueryRow(t.Context(), schemas).Scan(&left))
	if left != 0 {
		t.Errorf("%d schemas are left", left)
	}
}

// The Pod of a drill, which has what an application has, is refused its writes while a volume is full, and loses none.
func TestADrillMeasuresAFullVolume(t *testing.T) {
	c, leader := onSmallVolumes(t)
	ordinal, _ := naming.Ordinal(leader)
	host := c.host(ordinal)
	for key, text := range map[string]string{
		naming.KeyHost: host, naming.KeyPort: strconv.Itoa(naming.PortPostgreSQL), naming.KeyUsername: "app",
		naming.KeyPassword: "app", naming.KeyDatabase: "app", naming.KeyCA: string(c.authority.CertPEM()),
	} {
		c.write("secret/"+key, []byte(text))
	}
	o := drill.PodOptions{
		App: filepath.Join(c.folder, "secret"), Hosts: host, Schema: "toban_drill_x", Observe: 10 * time.Second,
		AbortAfter: time.Minute, Probe: c.host(200) + ":8080", Termination: filepath.Join(c.folder, "left"),
	}
	over := make(chan error, 1)
	go func() { over <- drill.RunPod(t.Context(), o) }()
	c.until("its clients write", func() error {
		response, err := http.Get("http://" + o.Probe + "/readyz") //nolint:noctx // it ends with the test
		if err != nil {
			return err
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
	const lasts = 4 * time.Second
	c.must(c.orderFault(leader, protocol.FaultOrder{
		Drill: "d", Fault: protocol.FaultFillVolume, For: lasts, Volume: 512 << 20,
	}))
	c.must(<-over)
	left, err := os.ReadFile(o.Termination)
	c.must(err)
	var result protocol.DrillResult
	c.must(json.Unmarshal(left, &result))
	t.Logf("it leaves %s", left)
	for _, seen := range result.Clients {
		if seen.Outage < lasts/2 || seen.Errors == 0 || seen.Lost != 0 || seen.Acknowledged == 0 {
			t.Errorf("%s has seen %+v", seen.Way, seen)
		}
	}
	if len(result.Clients) != 2 || result.Aborted {
		t.Errorf("it leaves %+v", result)
	}
}
