package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	"golang.org/x/sys/unix"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/test/outside"
)

// leading says that an instance is the primary of its term.
func leading(s protocol.Status) bool { return primary(s) && s.Election.Leading }

// names are those of all members.
func (c *cluster) names() []string {
	var names []string
	for _, m := range c.config.Members {
		names = append(names, m.Name)
	}
	return names
}

// leader waits for one instance that leads, other than those named.
func (c *cluster) leader(not ...string) string {
	c.Helper()
	var seen []string
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		seen = nil
		for _, name := range c.names() {
			s, err := c.status(name)
			if err == nil && leading(s) && !slices.Contains(not, name) {
				return name
			}
			seen = append(seen, fmt.Sprintf("%s: %s %s term %d %s %s %v",
				name, s.Role, s.Reason, s.Term, s.Leader, s.Message, err))
		}
	}
	c.Fatalf("nobody leads besides %v:\n%s", not, strings.Join(seen, "\n"))
	return ""
}

// whole waits until one instance leads, all others stream from it, and all vote.
func (c *cluster) whole() string {
	c.Helper()
	leader, all := "", c.names()
	c.until("one leads, and all others are its standbys and have a vote", func() error {
		leader = "" // another one may lead than a moment ago
		for _, name := range all {
			s, err := c.status(name)
			switch {
			case err != nil:
				return err
			case leading(s) && len(s.Standbys) == len(all)-1 && len(s.Voters) == len(all):
				leader = name
			case !streaming(s):
				return fmt.Errorf("%s: %s: %s", name, s.Reason, s.Message)
			}
		}
		if leader == "" {
			return errors.New("nobody leads them all")
		}
		return nil
	})
	return leader
}

// writer writes numbered rows to whoever leads, and remembers those that were acknowledged.
type writer struct {
	*cluster
	stop  context.CancelFunc
	wait  sync.WaitGroup
	mutex sync.Mutex
	acked []int
	gap   outside.Gap
}

func (c *cluster) write3() *writer {
	c.Helper()
	leader := c.leader()
	c.exec(leader, "create table if not exists acked (id int primary key, server text)")
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{cluster: c, stop: stop}
	for lane := range 3 {
		w.wait.Go(func() { w.run(ctx, lane) })
	}
	c.Cleanup(func() { stop(); w.wait.Wait() })
	return w
}

func (w *writer) run(ctx context.Context, lane int) {
	for id := lane; ctx.Err() == nil; {
		for _, name := range w.names() {
			conn, err := w.connect(name)
			if err != nil {
				continue
			}
			for w.insert(ctx, conn, id) {
				id += 3
			}
			id += 3
			_ = conn.Close(context.Background())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// insert writes one row. A write that is not answered in time counts for nothing:
// its connection is given up.
func (w *writer) insert(ctx context.Context, conn *pgx.Conn, id int) bool {
	once, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := conn.Exec(once, "insert into acked values ($1, current_setting('cluster_name'))", id)
	if err != nil {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.acked = append(w.acked, id)
	w.gap.Note(time.Now())
	return true
}

// inTime holds that writes were never away for longer than what has happened takes. A writer notices late that they are
// back where it waits for an instance that does not answer: after 7 s at most.
func (w *writer) inTime(bound outside.Bound) {
	w.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.Logf("%d writes, the longest time without one is %s", len(w.acked), w.gap.Longest())
	if err := bound.Judge(w.gap.Longest()); err != nil {
		w.Error(err)
	}
}

func (w *writer) count() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.acked)
}

// goesOn waits until some more writes are acknowledged.
func (w *writer) goesOn() {
	w.Helper()
	have := w.count()
	for end := time.Now().Add(deadline); w.count() < have+30; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("writes do not go on")
		}
	}
}

// check ends the writing, holds what has happened to a bound for how long that was away, and looks for every
// acknowledged row, on every instance.
func (w *writer) check(bound outside.Bound) {
	w.Helper()
	w.stop()
	w.wait.Wait()
	w.inTime(bound)
	leader := w.whole()
	for _, name := range w.names() {
		w.awaitQuery(name, "select (count(*) = (select count(*) from acked))::text from acked", "true")
		conn, err := w.connect(name)
		if err != nil {
			w.Fatal(err)
		}
		if name != leader {
			w.awaitCaughtUp(leader, name)
		}
		rows, _ := conn.Query(w.Context(), "select id from acked")
		there, err := pgx.CollectRows(rows, pgx.RowTo[int])
		_ = conn.Close(context.Background())
		if err != nil {
			w.Fatal(err)
		}
		found := map[int]bool{}
		for _, id := range there {
			found[id] = true
		}
		lost := 0
		for _, id := range w.acked {
			if !found[id] {
				lost++
			}
		}
		if lost > 0 {
			w.Errorf("%s lacks %d of %d acknowledged rows", name, lost, len(w.acked))
		}
	}
}

// awaitCaughtUp waits until a standby has replayed what the leader has written by now.
func (c *cluster) awaitCaughtUp(leader, name string) {
	c.Helper()
	lsn, err := c.query(leader, "select pg_current_wal_lsn()::text")
	if err != nil {
		c.Fatal(err)
	}
	c.awaitQuery(name, fmt.Sprintf("select (pg_last_wal_replay_lsn() >= '%s')::text", lsn), "true")
}

// backends are the processes of an instance's server.
func (c *cluster) processes(name string) []int {
	c.Helper()
	postmaster := c.postmaster(name)
	pids := []int{postmaster}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var pid, parent int
		_, after, _ := strings.Cut(string(text), ") ")
		var state string
		if _, err := fmt.Sscanf(string(text), "%d", &pid); err != nil {
			continue
		}
		if _, err := fmt.Sscanf(after, "%s %d", &state, &parent); err == nil && parent == postmaster {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestPostmasterOfThePrimaryKilled(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	_ = syscall.Kill(c.postmaster(old), syscall.SIGKILL)
	c.leader(old)
	w.goesOn()
	w.check(outside.Lost)
}

// With nobody to take over, a primary whose server was killed starts it again in its place. That is over then: it is no
// reason to go when the others are back. Only a fence for another reason, on a busy machine, may move the lead.
func TestRestartInPlaceIsNoReasonToGoLater(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.kill("db-2", syscall.SIGTERM)
	before, old := c.await("db-0", "leading", leading), c.postmaster("db-0")
	c.await("db-0", "without db-2", func(s protocol.Status) bool { return slices.Equal(s.Standbys, []string{"db-1"}) })
	time.Sleep(4 * time.Second) // what a peer has said counts for three seconds
	_ = syscall.Kill(old, syscall.SIGKILL)
	c.await("db-0", "running again", func(s protocol.Status) bool { return s.Ready && c.postmaster("db-0") != old })
	c.startOne("db-2")
	now := c.whole()
	log := c.logs["db-0"].String()
	if strings.Contains(log, `"reason":"ServerFailed"`) {
		t.Error("it went for a server that runs again")
	}
	after, err := c.status("db-0")
	if err != nil {
		t.Fatal(err)
	}
	if (now != "db-0" || after.Term != before.Term) && !strings.Contains(log, `"reason":"Isolated"`) {
		t.Errorf("%s leads, the term is %d, before %d", now, after.Term, before.Term)
	}
}

func TestAgentOfThePrimaryKilled(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	c.kill(old, syscall.SIGKILL)
	c.leader(old)
	w.goesOn()
	c.startOne(old)
	w.check(outside.Lost)
}

func TestPrimaryToldToStopHandsOver(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	log := c.logs[old]
	c.kill(old, syscall.SIGTERM)
	c.leader(old)
	w.goesOn()
	if !strings.Contains(log.String(), "SwitchoverAsked") {
		t.Error("it did not resign in order")
	}
	c.startOne(old)
	w.check(outside.HandsOver)
}

func TestServerOfThePrimaryHangs(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	for _, pid := range c.processes(old) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	c.leader(old)
	w.goesOn()
	w.check(outside.Hangs)
}

// A server that has no room for another client lives, as it says itself.
func TestTooManyClientsAreNoReasonToFailOver(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.leader()
	before, err := c.status(leader)
	if err != nil {
		t.Fatal(err)
	}
	// The place of a session of the agent is free again when that ends, so places are taken until the agent is refused.
	own := 0
	fill := func() {
		conn, err := c.connect(leader)
		for ; err == nil; conn, err = c.connect(leader) {
			held := conn
			t.Cleanup(func() { _ = held.Close(context.Background()) })
		}
		if !postgres.TooManyClients(err) {
			t.Fatal(err)
		}
		own++
	}
	c.await(leader, "refused by its server", func(protocol.Status) bool {
		fill()
		return strings.Count(c.logs[leader].String(), "too many clients")-own > 5
	})
	now, err := c.status(leader)
	if err != nil || now.Term != before.Term || !leading(now) {
		t.Errorf("%s is of term %d, leading: %v, %v; before of term %d",
			leader, now.Term, leading(now), err, before.Term)
	}
}

// The whole Pod stands still, and goes on later as if nothing had happened: it
// may not acknowledge anything then.
func TestPrimaryFrozenAndThawed(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	pids := append(c.processes(old), c.agents[old].Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	c.leader(old)
	w.goesOn()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	w.check(outside.Lost)
}

func TestSwitchoverAsked(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	old := c.leader()
	wanted := "db-2"
	if old == wanted {
		wanted = "db-1"
	}
	ordinal, _ := naming.Ordinal(old)
	if _, err := c.operator.Switchover(t.Context(), c.host(ordinal),
		protocol.Switchover{To: wanted, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	c.await(wanted, "leading", leading)
	w.goesOn()
	w.check(outside.HandsOver)
}

// From quorum to async and back, while rows are written: nothing fails, and
// who waits for whom is as it was asked for.
func TestDurabilityChangedUnderWrites(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	for _, step := range []struct {
		durability       string
		acknowledgements int
		rule             string
	}{{"async", 1, ""}, {"quorum", 2, "ANY 1"}} {
		c.config.Durability = step.durability
		c.sync()
		c.await(c.leader(), step.durability,
			func(s protocol.Status) bool { return leading(s) && s.Acknowledgements == step.acknowledgements })
		c.awaitQuery(c.leader(), "select left(current_setting('synchronous_standby_names'), 5)", step.rule)
		w.goesOn()
	}
	w.check(outside.Undisturbed)
}

// process is the id of a process of an instance's server, by what it calls itself.
func (c *cluster) process(name, title string) int {
	c.Helper()
	pid := c.find(name, title)
	if pid == 0 {
		c.Fatalf("%s has no %s", name, title)
	}
	return pid
}

// find is process where there may be none: 0 then.
func (c *cluster) find(name, title string) int {
	for _, pid := range c.processes(name) {
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(command), title) {
			return pid
		}
	}
	return 0
}

// A leader is lost right after durability has changed from async to quorum. The next one's PostgreSQL, which was
// started without a rule, does not know of the new one yet: its checkpointer is at something else. Nothing that it
// commits may be acknowledged, as no standby has it.
func TestFailoverAfterDurabilityHasChanged(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.config.Durability = "async"
	c.sync()
	leader := c.whole()
	c.await(leader, "async", func(s protocol.Status) bool { return s.Acknowledgements == 1 })
	c.exec(leader, createReader, "grant create on schema public to reader")
	for _, name := range c.names() {
		if name != leader {
			c.kill(name, syscall.SIGKILL)
			c.startOne(name)
			c.await(name, "a standby", streaming)
		}
	}
	winner := c.standby(leader)
	c.awaitCaughtUp(leader, winner)
	client, err := pgx.Connect(t.Context(), c.reader(winner))
	c.must(err)
	defer client.Close(context.WithoutCancel(t.Context()))
	checkpointer := c.process(winner, "checkpointer")
	c.must(syscall.Kill(checkpointer, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(checkpointer, syscall.SIGCONT) }()
	c.config.Durability = "quorum"
	c.sync()
	c.await(leader, "quorum", func(s protocol.Status) bool { return leading(s) && s.Acknowledgements == 2 })
	for _, name := range c.names() {
		if name != leader && name != winner {
			receiver := c.process(name, "walreceiver")
			c.must(syscall.Kill(c.postmaster(name), syscall.SIGSTOP)) // it votes, and follows nobody
			defer func() { _ = syscall.Kill(c.postmaster(name), syscall.SIGCONT) }()
			c.must(syscall.Kill(receiver, syscall.SIGTERM))
			for c.find(name, "walreceiver") != 0 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
	c.exec(leader, "create table newest ()") // only the winner has it: the other one is not elected
	c.kill(leader, syscall.SIGKILL)
	c.awaitLog(winner, `"msg":"elected"`, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for err = errors.New("nothing yet"); err != nil && ctx.Err() == nil &&
		!client.IsClosed(); time.Sleep(time.Millisecond) {
		_, err = client.Exec(ctx, "create table acknowledged ()")
	}
	if err == nil {
		t.Errorf("%s has acknowledged a commit that nobody else has", winner)
	}
	c.awaitLog(winner, "lets nobody in until commits are seen to wait", 1)
}

func TestNoMajorityIsARefusalWithItsReason(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.leader()
	left := ""
	for _, name := range c.names() {
		if name == leader {
			continue
		}
		if left == "" {
			left = name
			continue
		}
		c.kill(name, syscall.SIGKILL)
	}
	c.kill(leader, syscall.SIGKILL)
	s := c.await(left, "refusing", func(s protocol.Status) bool {
		return s.Refusal == "NoMajority" && strings.Contains(s.Message, "does not answer")
	})
	if s.Role == protocol.RolePrimary {
		t.Errorf("it says %+v", s)
	}
	c.promisesNothing(left, ha.NewVoter(leader, "another"), s)
	c.startOne(leader)
	for _, name := range c.names() {
		if c.agents[name] == nil {
			c.startOne(name)
		}
	}
	c.whole()
}

// A leader comes back, but its recovery takes so long that another is elected meanwhile. Nobody may read from it
// what that one has overtaken.
func TestALeaderThatComesBackTooLateLetsNobodyIn(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	old := c.leader()
	c.exec(old, createReader, "create table large as select generate_series(1, 1000000) n")
	var agents []int // the others see nothing until it is back
	for _, name := range c.names() {
		if name != old {
			agents = append(agents, c.agents[name].Process.Pid)
		}
	}
	signal := func(what syscall.Signal) {
		for _, pid := range agents {
			_ = syscall.Kill(pid, what)
		}
	}
	signal(syscall.SIGSTOP)
	c.kill(old, syscall.SIGKILL)
	c.startOne(old)
	signal(syscall.SIGCONT)
	recovering := c.recovering(old)
	defer func() { _ = syscall.Kill(recovering, syscall.SIGCONT) }()
	next := c.leader(old)
	read := make(chan string, 1)
	go func() { read <- readsFromPrimary(c.Context(), c.reader(old), c.logs[old].String) }()
	_ = syscall.Kill(recovering, syscall.SIGCONT)
	c.await(old, "a standby", streaming)
	if words := <-read; words != "" {
		t.Errorf("while %s leads, %s", next, words)
	}
}

// createReader makes a role as an application has one, reader is how it reaches an instance.
const createReader = "create role reader login password 'r'; grant connect on database postgres to reader"

func (c *cluster) reader(name string) string {
	ordinal, _ := naming.Ordinal(name)
	return fmt.Sprintf("host=%s port=%d user=reader password=r dbname=postgres sslmode=require connect_timeout=2",
		c.host(ordinal), naming.PortPostgreSQL)
}

// A standby whose stream ends again and again is no place to read from.
func TestAStandbyThatDoesNotStreamForLongIsNotReady(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.leader()
	standby := c.standby(leader)
	end := fmt.Sprintf("select pg_terminate_backend(pid) from pg_stat_replication where application_name "+
		"like '%s.%%'", standby)
	unready := false
	for until := time.Now().Add(deadline); time.Now().Before(until) && !unready; time.Sleep(20 * time.Millisecond) {
		c.exec(leader, end)
		s, err := c.status(standby)
		unready = err == nil && !s.Ready
	}
	if !unready || strings.Contains(c.logs[standby].String(), "Stuck") {
		t.Fatalf("%s is ready until its data is copied anew", standby)
	}
	c.await(standby, "ready again", streaming)
	c.whole()
}

// standby is the first instance that is not the leader.
func (c *cluster) standby(leader string) string {
	if names := c.names(); names[0] != leader {
		return names[0]
	}
	return c.names()[1]
}

// recovering stops the process that recovers the server of an instance, and returns its id.
func (c *cluster) recovering(name string) int {
	c.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		for _, process := range processes {
			command, _ := os.ReadFile(process + "/cmdline")
			data, _ := os.Readlink(process + "/cwd")
			if strings.Contains(string(command), "startup") && data == filepath.Join(c.folder, name, "volume/data") {
				pid, _ := strconv.Atoi(filepath.Base(process))
				_ = syscall.Kill(pid, syscall.SIGSTOP)
				return pid
			}
		}
	}
	c.Fatalf("the server of %s does not recover", name)
	return 0
}

// readsFromPrimary tries to read from a server, as fast as it can until its agent says that it is a standby, and says
// so if that was as from a primary.
func readsFromPrimary(ctx context.Context, address string, log func() string) string {
	for !strings.Contains(log(), "standby of ") {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			continue
		}
		standby := true
		err = conn.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&standby)
		_ = conn.Close(ctx)
		if err == nil && !standby {
			return "a client reads from " + address + " as from a primary"
		}
	}
	return ""
}

// promisesNothing asks an instance that has lost its leader for a pre-vote, which it would give, and then for the vote.
func (c *cluster) promisesNothing(name string, candidate ha.Voter, before protocol.Status) {
	c.Helper()
	client := protocol.NewClient(c.clientTLS(c.authority, naming.IdentityInstance), naming.PortAgent)
	ordinal, _ := naming.Ordinal(name)
	request := ha.VoteRequest{Term: before.Term + 1, Candidate: candidate, Voter: before.Election.Voter, PreVote: true,
		Position: ha.Position{Term: before.Term, LSN: math.MaxInt64}}
	for _, preVote := range []bool{true, false} {
		request.PreVote = preVote
		reply, err := client.Vote(c.Context(), c.host(ordinal), request)
		c.must(err)
		if promised := reply.Ballot.Term == request.Term; !reply.Granted || promised == preVote {
			c.Errorf("pre-vote %v: %+v", preVote, reply)
		}
	}
}

// A leader resigns for a later term that somebody has promised in vain, nobody else can be elected, and so it is
// again. What the others may have of its last WAL, the record of its shutdown, is the beginning of its new WAL: they
// follow, without a rewind.
func TestALeaderThatResignedIsElectedAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a small volume")
	}
	t.Parallel()
	c := newCluster(t, 3)
	full := filepath.Join(c.folder, "db-2/volume")
	c.smallVolume(full, "250m")
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	c.whole()
	c.exec("db-0", "create table t (n int)", "insert into t values (1)")
	c.kill("db-1", syscall.SIGTERM)
	c.kill("db-2", syscall.SIGTERM)
	c.must(os.RemoveAll(filepath.Join(full, "toban/reserve"))) // db-2 would give it back, and could lead
	filling := c.fill(full)
	c.promise("db-2", 5)
	c.startOne("db-2")
	again := c.await("db-0", "leading a later term", func(s protocol.Status) bool { return leading(s) && s.Term > 5 })
	c.must(os.Remove(filling))
	c.startOne("db-1")
	c.whole()
	starts := again.Election.TermHistory
	last := starts[len(starts)-1]
	history, err := os.ReadFile(filepath.Join(c.folder, "db-0/volume/data/pg_wal", last.Timeline.HistoryFile()))
	c.must(err)
	began, err := wal.ParseHistory(last.Timeline, string(history))
	c.must(err)
	if begin := began.Begin(); begin != last.LSN {
		t.Errorf("the term history says that its WAL begins at %s, PostgreSQL:\n%s", last.LSN, history)
	}
	for _, name := range c.names() {
		if log := c.logs[name].String(); strings.Contains(log, "pg_rewind") {
			t.Errorf("%s was rewound:\n%s", name, log)
		}
	}
}

// An agent that ended between its election and its promotion asks whether it still is the one, before it goes on.
func TestAWinnerThatEndedBeforeItsPromotion(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	old := c.leader()
	winner := c.standby(old)
	c.awaitCaughtUp(old, winner)
	end, err := c.query(old, "select pg_current_wal_flush_lsn()::text")
	c.must(err)
	c.kill(winner, syscall.SIGTERM)
	for _, name := range c.names() {
		if name != winner {
			c.kill(name, syscall.SIGKILL)
		}
		c.remember(name, func(m *ha.HardState) { m.Ballot = ha.Ballot{Term: 5, Leader: winner} })
	}
	c.remember(winner, func(m *ha.HardState) {
		m.Won, m.Configuration.Term, m.Configuration.Version = 5, 5, m.Configuration.Version+1
	})
	c.elected(winner, 5, end)
	c.start(c.names()...)
	c.await(winner, "leading the term that it has won",
		func(s protocol.Status) bool { return leading(s) && s.Term == 5 })
	c.whole()
	log := c.logs[winner].String()
	asked, promoted := strings.LastIndex(log, "a majority confirms the leader"), strings.LastIndex(log,
		"received promote request")
	if asked < 0 || promoted < asked {
		t.Errorf("it has not asked (%d) before its promotion (%d)", asked, promoted)
	}
}

// elected puts into the data of an instance that does not run that it was elected at a place in the WAL, and has no
// timeline of its own yet.
func (c *cluster) elected(name string, term uint64, end string) {
	c.Helper()
	at, err := wal.ParseLSN(end)
	c.must(err)
	file := filepath.Join(c.folder, name, "volume/data/toban_lineage.json")
	text, err := os.ReadFile(file)
	c.must(err)
	var history []ha.TermStart
	c.must(json.Unmarshal(text, &history))
	text, err = json.Marshal(append(history, ha.TermStart{Term: term, LSN: at}))
	c.must(err)
	c.must(os.WriteFile(file, text, 0o600))
}

// promise makes an instance that does not run promise a term to itself.
func (c *cluster) promise(name string, term uint64) {
	c.Helper()
	c.remember(name, func(m *ha.HardState) { m.Ballot = ha.Ballot{Term: term, Leader: name} })
}

// remember changes what an instance that does not run has promised.
func (c *cluster) remember(name string, change func(*ha.HardState)) {
	c.Helper()
	file := filepath.Join(c.folder, name, "volume/toban/memory.json")
	text, err := os.ReadFile(file)
	c.must(err)
	var memory ha.HardState
	c.must(json.Unmarshal(text, &memory))
	change(&memory)
	text, err = json.Marshal(memory)
	c.must(err)
	c.must(os.WriteFile(file, text, 0o600))
}

// fill leaves less of a volume than a leader needs, by a file, which is made longer where it is there.
func (c *cluster) fill(volume string) string {
	c.Helper()
	var stat unix.Statfs_t
	c.must(unix.Statfs(volume, &stat))
	filling, err := os.OpenFile(filepath.Join(volume, "filling"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	c.must(err)
	_, err = filling.Write(make([]byte, max(0, int64(stat.Bavail)*stat.Bsize-8<<20)))
	c.must(errors.Join(err, filling.Close()))
	return filling.Name()
}
