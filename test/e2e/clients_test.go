//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

// programs are the clients of test/clients, and by which strings of NAME-app each connects: by the Service, by the
// hosts of all instances where its driver knows several, and by the pooler.
var programs = map[string]struct {
	command []string
	keys    []string
}{
	"psycopg": {
		[]string{"/usr/bin/python3", "client.py"}, []string{naming.KeyURI, naming.KeyHostsURI, naming.KeyPoolURI},
	},
	"node-postgres": {[]string{"node", "client.js"}, []string{naming.KeyURI, naming.KeyPoolURI}},
	"JDBC, HikariCP": {
		[]string{
			"java", "-Xmx64m", "-Dsun.net.inetaddr.ttl=1", "-cp",
			".:" + jars("postgresql", "HikariCP", "slf4j-api", "slf4j-nop"), "Client",
		}, []string{naming.KeyJDBC, naming.KeyHostsJDBC, naming.KeyPoolJDBC},
	},
	"database/sql, pgx": {[]string{"./gosql"}, []string{naming.KeyURI, naming.KeyHostsURI, naming.KeyPoolURI}},
}

// jars are Debian's files of Java libraries.
func jars(names ...string) string {
	for i, name := range names {
		names[i] = "/usr/share/java/" + name + ".jar"
	}
	return strings.Join(names, ":")
}

// inCluster runs a command as if it were in a Pod: with the cluster's DNS, and NAME-app mounted where its strings say.
const inCluster = `set -e
mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
mkdir -p "$2"
mount --bind "$1/secret" "$2"
shift 2
exec "$@"`

// client is one program with one string, and what it has said.
type client struct {
	name    string
	command *exec.Cmd

	mutex  sync.Mutex
	acked  map[string]bool // "client row"
	last   time.Time
	since  int         // acknowledged rows since the change of this act
	gap    outside.Gap // between two of them, in this act
	errors []string    // in this act
	failed []outside.Failure
}

func (c *client) hear(line string) {
	what, rest, _ := strings.Cut(line, " ")
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if what != "ok" {
		c.errors = append(c.errors, line)
		c.failed = append(c.failed, outside.Failure{At: time.Now(), Err: errors.New(line)})
		return
	}
	c.acked[rest], c.last = true, time.Now()
	c.gap.Note(c.last)
	c.since++
}

// begins forgets what an act before has brought.
func (c *client) begins() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.gap.Forget()
	c.errors, c.failed = nil, nil
}

// changed counts the rows from now on.
func (c *client) changed() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.since = 0
}

// goesOn says whether it has written so many rows since the change, and none of the last was refused.
func (c *client) goesOn(rows int) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.since >= rows && time.Since(c.last) < time.Second {
		return nil
	}
	last := "no error"
	if len(c.errors) > 0 {
		last = c.errors[len(c.errors)-1]
	}
	return fmt.Errorf("%s has written %d rows since the change, the last %s ago; its last error: %s", c.name, c.since,
		time.Since(c.last).Round(time.Millisecond), last)
}

// Clients in the drivers that people use write by each connection string of NAME-app, through a switchover, a primary
// that is killed, and other passwords and authorities. All of them go on, and nothing acknowledged is lost. The other
// stories have pgx only: TestFailover, TestPooler, TestRotation and TestLongRotationOfTheAuthority.
func TestLongClientsPeopleUse(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3, "pooler: {}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	s.sql("shop", "CREATE TABLE written (client text, row int)")
	clients, logs := s.startClients("shop"), s.followLogs("shop", 3)
	act := func(name string, change func()) {
		t.Helper()
		for _, c := range clients {
			c.begins()
		}
		change()
		for _, c := range clients {
			c.changed()
		}
		s.until(func(context.Context) error {
			for _, c := range clients {
				if err := c.goesOn(40); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		})
		for _, c := range clients {
			c.mutex.Lock()
			t.Logf("%-18s %-34s %5.2f s without a row, %3d errors", name, c.name, c.gap.Longest().Seconds(),
				len(c.errors))
			if err := outside.Lost.Judge(c.gap.Longest()); err != nil {
				t.Errorf("%s: %s: %v", name, c.name, err)
			}
			for _, kind := range slices.Compact(slices.Sorted(slices.Values(withoutRows(c.errors)))) {
				t.Logf("    %s", kind)
			}
			c.mutex.Unlock()
		}
	}
	act("the start", func() {})
	act("a switchover", func() { s.switchOver("shop") })
	for _, c := range clients {
		if err := c.sawNoErrorThroughThePooler(logs.Texts()); err != nil {
			t.Error(err)
		}
	}
	act("a killed primary", func() {
		before := s.ready("shop")
		s.run("delete", "pod", before.Status.Primary, "--grace-period=0", "--force")
		s.electedAfter(before)
		s.ready("shop")
	})
	act("another password", func() {
		s.run("annotate", "sampledb", "shop", naming.AnnotationRotatePassword+"=now")
		s.rotated("shop", 1)
		s.switchOver("shop") // all need another session
	})
	act("another authority", func() {
		s.run("annotate", "sampledb", "shop", naming.AnnotationRotateAuthority+"=10s")
		s.authorityAlone("shop", 1)
		s.switchOver("shop")
	})
	s.nothingIsLost("shop", clients)
}

// sawNoErrorThroughThePooler is an error where a client of the pooler has seen one in this act, but for those of a
// hand-over for which not all poolers held.
func (c *client) sawNoErrorThroughThePooler(logs []string) error {
	if !strings.Contains(c.name, "pool-") {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := outside.Forgive(c.failed, outside.ReadHandOvers(logs...)); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// withoutRows are errors without who saw them, and for which row.
func withoutRows(lines []string) []string {
	var out []string
	for _, line := range lines {
		if words := strings.SplitN(line, " ", 4); len(words) == 4 {
			out = append(out, words[3])
		}
	}
	return out
}

// startClients starts each program with each of its strings, until the story ends.
func (s *story) startClients(name string) []*client {
	s.Helper()
	repository, err := releases.Repository()
	must(s.T, err)
	build := exec.CommandContext(s.ctx, filepath.Join(repository, "hack", "clients.sh"))
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("build the clients: %v: %s", err, out)
	}
	folder, mounted := s.podOnThisMachine(name), filepath.Dir(naming.TrustFile(name))
	s.Cleanup(func() { _ = os.Remove(mounted) }) // empty outside of the clients
	var out []*client
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		for _, key := range programs[program].keys {
			c := &client{name: program + ", " + key, acked: map[string]bool{}}
			worker := strings.Trim(strings.Fields(program)[0], ",") + "/" + key
			c.command = exec.CommandContext(s.ctx, "unshare", slices.Concat(
				[]string{"--mount", "bash", "-c", inCluster, "bash", folder, mounted},
				programs[program].command, []string{mounted, key, worker})...)
			c.command.Dir = filepath.Join(repository, ".local", "clients")
			c.start(s)
			out = append(out, c)
		}
	}
	return out
}

// start starts a client, and hears it until the story ends.
func (c *client) start(s *story) {
	s.Helper()
	says, err := c.command.StdoutPipe()
	must(s.T, err)
	problem := &strings.Builder{}
	c.command.Stderr = problem
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(s.T, c.command.Start())
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(says); lines.Scan(); {
			c.hear(lines.Text())
		}
	}()
	s.Cleanup(func() {
		_ = c.command.Process.Kill()
		<-heard
		_ = c.command.Wait()
		if s.Failed() && problem.Len() > 0 {
			s.Logf("%s: %.2000s", c.name, problem)
		}
	})
}

// podOnThisMachine is a folder with what a Pod would have: the settings of the cluster's DNS, and NAME-app, which
// follows that Secret until the story ends, as the kubelet has it.
func (s *story) podOnThisMachine(name string) string {
	s.Helper()
	server, err := url.Parse(s.run("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
	must(s.T, err)
	folder := s.TempDir()
	must(s.T, os.Mkdir(filepath.Join(folder, "secret"), 0o700))
	const settings = "nameserver %s\nsearch %s.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
	resolv := fmt.Sprintf(settings, server.Hostname(), s.Namespace)
	must(s.T, os.WriteFile(filepath.Join(folder, "resolv.conf"), []byte(resolv), 0o600))
	mount := func() {
		for key, value := range s.secretOf(naming.AppSecret(name)) {
			file := filepath.Join(folder, "secret", key)
			if was, err := os.ReadFile(file); err != nil || string(was) != string(value) {
				must(s.T, os.WriteFile(file+".new", value, 0o600))
				must(s.T, os.Rename(file+".new", file))
			}
		}
	}
	mount()
	ctx, end := context.WithCancel(s.ctx)
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			if there, err := s.Exists(ctx, "secret/"+naming.AppSecret(name)); err == nil && there {
				mount()
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	s.Cleanup(func() { end(); following.Wait() })
	return folder
}

// nothingIsLost ends the clients, and looks for each row that was acknowledged.
func (s *story) nothingIsLost(name string, clients []*client) {
	s.Helper()
	session, err := s.access(name, naming.ReadWriteService(name)).Patient().Connect(s.ctx)
	must(s.T, err)
	defer session.Close(s.ctx)
	for _, c := range clients {
		_ = c.command.Process.Kill()
	}
	rows, err := session.Query(s.ctx, "SELECT client || ' ' || row FROM written")
	must(s.T, err)
	there := map[string]bool{}
	for rows.Next() {
		var row string
		must(s.T, rows.Scan(&row))
		there[row] = true
	}
	must(s.T, rows.Err())
	all := 0
	for _, c := range clients {
		c.mutex.Lock()
		for row := range c.acked {
			if all++; !there[row] {
				s.Errorf("%s: the row %q was acknowledged and is lost", c.name, row)
			}
		}
		c.mutex.Unlock()
	}
	s.Logf("%d acknowledged rows, all there", all)
}
