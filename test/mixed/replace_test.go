package mixed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// next is a release to come, which does the same as today's.
func next(t *testing.T) release {
	t.Helper()
	return today(t).next(t)
}

// next is the release after this one: the same program with a byte behind it.
func (r release) next(t *testing.T) release {
	t.Helper()
	return r.with(t, r.version+"-next", func(text []byte) []byte { return append(text, 0) })
}

// then is a release to come that does something else than today's once it is given the agent's process: the lines of a
// script. In a rehearsal it is today's.
func then(t *testing.T, version, lines string) release {
	t.Helper()
	r := today(t)
	return r.with(t, version, func([]byte) []byte {
		return []byte("#!/bin/sh\ncase \"$*\" in *--rehearse) exec " + r.program + " \"$@\" ;; esac\n" + lines + "\n")
	})
}

// with is a release whose program is made of this one's.
func (r release) with(t *testing.T, version string, made func([]byte) []byte) release {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	changed := release{version: version, program: filepath.Join(programs, "toban-"+version)}
	if err := os.WriteFile(changed.program, made(r.bytes(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	return changed
}

// bytes are a release's program.
func (r release) bytes(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(r.program)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// give gives the agent of an instance a program, as the operator does.
func (c *cluster) give(name string, is protocol.Program, text []byte) error {
	ctx, cancel := context.WithTimeout(c.Context(), deadline)
	defer cancel()
	_, err := c.operator.GiveProgram(ctx, c.hostOf(name), is, int64(len(text)), bytes.NewReader(text))
	return err
}

func (c *cluster) giveText(name string, text []byte) error {
	return c.give(name, protocol.Program{SHA256: hashOf(text), Architecture: runtime.GOARCH}, text)
}

// replace has an instance go on as a program. As the operator does, it gives it again where the moment was not good.
func (c *cluster) replace(name string, text []byte) {
	c.Helper()
	sha := hashOf(text)
	c.must(c.giveText(name, text))
	c.await(name+" runs "+sha[:8], func(found map[string]protocol.Status) bool {
		c.giveAgain(found, name, text)
		p := found[name].Program
		return p != nil && p.SHA256 == sha
	})
}

// giveAgain gives an instance a program again where the moment was not good: a busy machine rehearses slowly.
func (c *cluster) giveAgain(found map[string]protocol.Status, name string, text []byte) {
	c.Helper()
	p := found[name].Program
	if p == nil || p.Failed == nil || p.Failed.SHA256 != hashOf(text) {
		return
	}
	if !p.Failed.Busy {
		c.Fatalf("%s does not run it: %s", name, p.Failed.Message)
	}
	c.Logf("%s is given it again: %s", name, p.Failed.Message)
	c.must(c.giveText(name, text))
}

// awaitFailed waits until an instance says that it does not run a program, and tells why.
func (c *cluster) awaitFailed(name, sha string) (why string) {
	c.Helper()
	c.await(name+" does not run "+sha[:8], func(found map[string]protocol.Status) bool {
		p := found[name].Program
		if p == nil || p.Failed == nil || p.Failed.SHA256 != sha {
			return false
		}
		why = p.Failed.Message
		return true
	})
	return why
}

// postmaster is the process of an instance's server, with when that was started.
func (c *cluster) postmaster(name string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, name, "volume", "data", "postmaster.pid"))
	c.must(err)
	pid, _, _ := strings.Cut(string(text), "\n")
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	c.must(err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	if parent := strconv.Itoa(c.instances[name].cmd.Process.Pid); fields[2] != parent {
		c.Fatalf("the server of %s is a child of process %s, and the agent is %s", name, fields[2], parent)
	}
	return pid + " since " + fields[20]
}

// session is a client's that stays connected.
type session struct {
	*pgx.Conn
	pid uint32
}

func (c *cluster) session(name string) session {
	c.Helper()
	conn, err := c.connect(name)
	c.must(err)
	c.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{conn, conn.PgConn().PID()}
}

// still says that it is the same session.
func (s session) still(c *cluster) {
	c.Helper()
	var pid uint32
	if err := s.QueryRow(c.Context(), "select pg_backend_pid()").Scan(&pid); err != nil || pid != s.pid {
		c.Errorf("the session has not stayed: process %d, before %d, %v", pid, s.pid, err)
	}
}

// strict writes by one session that it does not renew, and counts.
type strict struct {
	writes, failed atomic.Int64
	longest        atomic.Int64 // nanoseconds
	stop           func()
}

func (c *cluster) strictWriter(name string) *strict {
	c.Helper()
	conn := c.session(name)
	_, err := conn.Exec(c.Context(), "create table if not exists strict (id bigint)")
	c.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &strict{}
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := conn.Exec(context.Background(), "insert into strict values (1)"); err != nil {
				s.failed.Add(1)
				return
			}
			s.longest.Store(max(s.longest.Load(), int64(time.Since(began))))
			s.writes.Add(1)
		}
	})
	s.stop = func() { cancel(); wait.Wait() }
	c.Cleanup(s.stop)
	return s
}

// Every agent is replaced, standbys first, under a writer and with sessions that stay. The primary is one of a release
// that goes on for half an hour without a majority, so that a busy machine costs no fence.
func TestAgentsAreReplacedInPlace(t *testing.T) {
	t.Parallel()
	now := patient(t)
	next := now.next(t)
	c := newCluster(t, 110, now)
	leader := c.whole()
	before, err := c.status(leader)
	c.must(err)
	postmasters, sessions := map[string]string{}, map[string]session{}
	for _, name := range c.names() {
		postmasters[name], sessions[name] = c.postmaster(name), c.session(name)
	}
	_, err = sessions[leader].Exec(c.Context(), "begin; create temp table kept as select 7 as n")
	c.must(err)
	w := c.strictWriter(leader)
	for _, to := range []release{next, now} { // there and back
		text := to.bytes(t)
		for {
			name := c.turn(to, leader)
			if name == "" {
				break
			}
			began := time.Now()
			c.replace(name, text)
			took := time.Since(began)
			c.instances[name].release = to
			if got := c.whole(); got != leader {
				t.Fatalf("%s leads, and before %s", got, leader)
			}
			t.Logf("%s is %s after %.2f s (leader: %t)", name, to.version, took.Seconds(), name == leader)
		}
	}
	for _, name := range c.names() {
		if got := c.postmaster(name); got != postmasters[name] {
			t.Errorf("the server of %s is process %s, and before %s", name, got, postmasters[name])
		}
		sessions[name].still(c)
		if s, err := c.status(name); err != nil || s.Term != before.Term {
			t.Errorf("%s is in term %d, before %d, %v", name, s.Term, before.Term, err)
		}
	}
	if _, err := sessions[leader].Exec(c.Context(), "insert into strict select n from kept; commit"); err != nil {
		t.Errorf("a transaction that was open all the time: %v", err)
	}
	w.stop()
	t.Logf("%d writes, %d failed, the longest took %s", w.writes.Load(), w.failed.Load(),
		time.Duration(w.longest.Load()))
	if w.failed.Load() > 0 || w.writes.Load() < 100 {
		t.Error("writes have failed")
	}
	// What was taken over can still be stopped, and started anew.
	c.end(leader, syscall.SIGTERM)
	c.leader(leader)
	c.start(leader)
	c.whole()
}

// While agents are replaced, who leads is killed each time: the kubelet starts it again with the program that its Pod
// was created with, and it is replaced again.
func TestLongAgentsAreReplacedWhileLeadersFail(t *testing.T) {
	t.Parallel()
	now, next := today(t), next(t)
	c := newCluster(t, 115, now)
	w := c.writeOn()
	for round := range 9 {
		leader := w.whole()
		name := c.turn(next, leader)
		if name == "" {
			break
		}
		c.replace(name, next.bytes(t))
		c.instances[name].release = next
		w.goesOn()
		leader = w.whole()
		c.end(leader, syscall.SIGKILL)
		c.leader(leader)
		c.instances[leader].release = now
		c.start(leader)
		w.goesOn()
		t.Logf("round %d: %s was replaced, then %s was killed", round, name, leader)
	}
	w.whole()
	w.checkAll()
}

// What is no program to go on as is not gone on as, and changes nothing.
func TestLongAProgramThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	good := next(t).bytes(t)
	former := map[string][]byte{} // none of them knows of handovers
	for _, r := range releases(t) {
		former[r.version] = r.built(t).bytes(t)
	}
	c := newCluster(t, 111, patient(t))
	leader := c.whole()
	server, open := c.postmaster(leader), c.session(leader)
	w := c.strictWriter(leader)
	script := func(lines string) []byte { return []byte("#!/bin/sh\n" + lines + "\n") }
	for name, p := range map[string]struct {
		is   protocol.Program
		text []byte
		why  string
	}{
		"another hash": {protocol.Program{SHA256: hashOf(nil), Architecture: runtime.GOARCH}, good[:2000], "SHA-256"},
		"another architecture": {protocol.Program{SHA256: hashOf(good), Architecture: "riscv64"}, good,
			"riscv64"},
		"cut off": {protocol.Program{SHA256: hashOf(good), Architecture: runtime.GOARCH}, good[:1000],
			"SHA-256"},
		"it ends":         {text: script("echo broken >&2; exit 7"), why: "broken"},
		"it hangs":        {text: script("sleep 600"), why: "did not end"},
		"it says nothing": {text: script("exit 0"), why: "could take over"},
		"it knows no format": {
			text: script("echo unknown format $TOBAN_HANDOVER_FORMAT >&2; exit 1"), why: "unknown format 1",
		},
	} {
		if p.is.SHA256 == "" {
			p.is = protocol.Program{SHA256: hashOf(p.text), Architecture: runtime.GOARCH}
		}
		if err := c.give(leader, p.is, p.text); err == nil || !strings.Contains(err.Error(), p.why) {
			t.Errorf("%s: %v", name, err)
		}
		if why := c.awaitFailed(leader, p.is.SHA256); !strings.Contains(why, p.why) {
			t.Errorf("%s: the status says %q", name, why)
		}
	}
	for version, text := range former {
		if err := c.giveText(leader, text); err == nil || !strings.Contains(err.Error(), "rehears") {
			t.Errorf("the program of %s is given: %v", version, err)
		}
	}
	open.still(c)
	w.stop()
	if got := c.postmaster(leader); got != server || w.failed.Load() > 0 {
		t.Errorf("the server is process %s, and before %s; %d writes have failed", got, server, w.failed.Load())
	}
	// Nobody but the operator may give a program.
	stranger := protocol.NewClient(c.clientTLS(c.authority, naming.IdentityInstance), naming.PortAgent)
	small := []byte("small, so that it is sent before it is refused")
	is := protocol.Program{SHA256: hashOf(small), Architecture: runtime.GOARCH}
	if _, err := stranger.GiveProgram(t.Context(), c.hostOf(leader), is, int64(len(small)),
		bytes.NewReader(small)); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("another instance gives a program: %v", err)
	}
}

// A program that fails only when it has the process costs what the end of the container costs: the kubelet starts it
// again with the program that its Pod was created with. At a primary that hangs the guard ends the server in time.
func TestLongAProgramThatFailsOnceItHasTheProcess(t *testing.T) {
	t.Parallel()
	crashes, hangs := then(t, "crashes", "exit 7").bytes(t), then(t, "hangs", "exec sleep 600").bytes(t)
	c := newCluster(t, 112, today(t))
	leader := c.whole()
	standby := c.names()[0]
	if standby == leader {
		standby = c.names()[1]
	}
	w := c.strictWriter(leader)
	c.must(c.giveText(standby, crashes))
	if err := c.awaitEnd(standby); err == nil {
		t.Error("the agent has ended in order")
	}
	c.start(standby)
	c.whole()
	if w.stop(); w.failed.Load() > 0 {
		t.Error("a write has failed while a standby's agent ended")
	}
	acknowledged := c.writeOn()
	server := c.postmaster(leader)
	c.must(c.giveText(leader, hangs))
	next := ""
	c.await("another one that leads", func(found map[string]protocol.Status) bool {
		c.giveAgain(found, leader, hangs)
		next = c.leads(found, leader)
		return next != ""
	})
	if pid, _, _ := strings.Cut(server, " "); isAlive(pid) {
		t.Errorf("the server of %s still runs, and %s leads", leader, next)
	}
	c.end(leader, syscall.SIGKILL) // as the kubelet does, because nobody answers its probe
	c.start(leader)
	c.whole()
	acknowledged.checkAll()
}

// isAlive says whether a process runs.
func isAlive(pid string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !bytes.Contains(text, []byte(") Z "))
}

// awaitEnd waits until the agent of an instance has ended.
func (c *cluster) awaitEnd(name string) (err error) {
	c.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.instances[name].cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(deadline):
		c.Fatalf("%s has not ended", name)
	}
	c.instances[name].cmd = nil
	return err
}

// late is a program that takes a process over and then hangs, before it takes part in elections.
func late(t *testing.T) release {
	t.Helper()
	return changed(t, "late", "toban.dev/internal/cli/process", "agent.go", "return a.Run(ctx)", "_ = a\n\tselect {}")
}

// A program that hangs after it has taken the process over gives it back.
func TestLongAHangingProgramGivesTheProcessBack(t *testing.T) {
	t.Parallel()
	text := late(t).bytes(t)
	c := newCluster(t, 114, today(t))
	leader := c.whole()
	standby := c.names()[0]
	if standby == leader {
		standby = c.names()[1]
	}
	server, open := c.postmaster(standby), c.session(standby)
	w := c.strictWriter(leader)
	c.must(c.giveText(standby, text))
	if why := c.awaitFailed(standby, hashOf(text)); !strings.Contains(why, "elections") {
		t.Errorf("the status says %q", why)
	}
	c.whole()
	open.still(c)
	if got := c.postmaster(standby); got != server {
		t.Errorf("the server is process %s, and before %s", got, server)
	}
	w.stop()
	if w.failed.Load() > 0 {
		t.Error("a write has failed")
	}
	// At the primary the guard ends the server at the fence: another leads before the process is given back.
	c.must(c.giveText(leader, text))
	c.leader(leader)
	if why := c.awaitFailed(leader, hashOf(text)); !strings.Contains(why, "elections") {
		t.Errorf("the status says %q", why)
	}
	c.whole()
	c.writeOn().goesOn()
}

// An instance that is stopped during an exchange, as a Pod that is deleted, stops its server in order.
func TestLongAnInstanceIsStoppedDuringAnExchange(t *testing.T) {
	t.Parallel()
	now, next := today(t), next(t)
	c := newCluster(t, 113, now)
	programs := map[release][]byte{now: now.bytes(t), next: next.bytes(t)}
	for round, milliseconds := range []int{0, 2, 10, 30, 60, 120} {
		delay := time.Duration(milliseconds) * time.Millisecond
		leader := c.whole()
		name := c.turn(release{}, leader)
		if round%3 == 2 {
			name = leader
		}
		is := next
		if c.instances[name].release == next {
			is = now
		}
		logged := len(c.instances[name].log.String())
		c.must(c.giveText(name, programs[is]))
		c.untilItSays(name, logged, "goes on as another program")
		time.Sleep(delay) //nolint:forbidigo // the moment is what is tried
		began := time.Now()
		c.beforeStop(name)
		t.Logf("%s (leader: %t) is told to stop after %s and %s", name, name == leader, delay, time.Since(began))
		c.must(c.instances[name].cmd.Process.Signal(syscall.SIGTERM))
		if err := c.awaitEnd(name); err != nil {
			t.Errorf("%s has ended: %v", name, err)
		}
		if !c.saysSince(name, logged, "database system is shut down") {
			t.Errorf("the server of %s was not shut down", name)
		}
		c.instances[name].release = is
		c.start(name)
	}
	// From then on none begins, until the container starts again.
	leader := c.whole()
	name := c.turn(release{}, leader)
	c.beforeStop(name)
	text := append(programs[now], 1)
	c.must(c.giveText(name, text))
	if why := c.awaitFailed(name, hashOf(text)); !strings.Contains(why, "told to stop") {
		t.Errorf("the status says %q", why)
	}
}

// beforeStop does what the kubelet does before it tells an agent to stop.
func (c *cluster) beforeStop(name string) {
	c.Helper()
	_, err := output(exec.CommandContext(c.Context(), today(c.T).program, "before-stop",
		"--run", filepath.Join(c.folder, name, "run")))
	c.must(err)
}

// untilItSays waits until an instance's log has some words behind a place.
func (c *cluster) untilItSays(name string, place int, words string) {
	c.Helper()
	for end := time.Now().Add(deadline); !c.saysSince(name, place, words); {
		if time.Now().After(end) {
			c.Fatalf("%s does not say %q", name, words)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the log is looked at
	}
}

// saysSince says whether an instance's log has some words behind a place.
func (c *cluster) saysSince(name string, place int, words string) bool {
	return strings.Contains(c.instances[name].log.String()[place:], words)
}
