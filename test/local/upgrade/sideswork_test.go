package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/bluegreen"
	"toban.dev/internal/work/pod"
)

// The addresses of the sides, which have the same port.
const blueAddress, greenAddress = "127.0.0.1", "127.0.0.2"

// pods are those of a blue/green upgrade, with what they are given.
type pods struct {
	*sides
	house    *house
	green    *pki.Authority
	folder   string
	servers  string
	port     int
	settings protocol.SidesSettings
}

func (s *sides) pods() *pods {
	s.Helper()
	p := &pods{sides: s, house: newHouse(s.T), folder: s.TempDir()}
	var err error
	p.green, err = pki.NewAuthority(bytes.Repeat([]byte{9}, 32), "db-green", time.Now())
	must(s, err)
	key, err := p.green.KeyPEM()
	must(s, err)
	must(s, os.WriteFile(filepath.Join(p.folder, naming.KeyCA), p.green.CertPEM(), 0o600))
	must(s, os.WriteFile(filepath.Join(p.folder, naming.KeyCAKey), key, 0o600))
	p.servers = filepath.Join(s.TempDir(), "servers 'of' both.crt")
	must(s, os.WriteFile(p.servers, p.house.authority.CertPEM(), 0o600))
	p.port = freePort(s.T)
	p.settings = protocol.SidesSettings{ID: id, Blue: protocol.SidesOf{Hosts: []string{"127.0.0.9", blueAddress}},
		Operator: string(p.house.operator.CertPEM())}
	return p
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port
}

// dress gives the server of a side its address and its certificates. It trusts clients of an authority, and shows a
// certificate of blue's.
func (p *pods) dress(i *instance, address string, clients *pki.Authority) {
	p.Helper()
	leaf, err := p.house.authority.Issue(naming.IdentityInstance, []string{address}, time.Now())
	must(p, err)
	for file, content := range map[string][]byte{
		postgres.FileAuthority: clients.CertPEM(), postgres.FileCertificate: leaf.CertPEM,
		postgres.FileKey: leaf.KeyPEM, postgres.FileClients: append(leaf.CertPEM, leaf.KeyPEM...),
	} {
		must(p, os.WriteFile(filepath.Join(i.Server.Run, file), content, 0o600))
	}
	i.Listen, i.Port = address, p.port
}

// serve has the server of a side take the Pods, as its agent would have it.
func (p *pods) serve(i *instance, address string, clients *pki.Authority, lines string) {
	p.Helper()
	p.dress(i, address, clients)
	must(p, i.Configure(postgres.Settings{Name: "db-0",
		Parameters: map[string]string{"max_prepared_transactions": "5"}}))
	i.configure("fsync = off\n" + lines)
	process, err := i.Start(i.Context(), &testLog{T: i.T})
	must(p, err)
	p.Cleanup(func() { process.Stop(context.Background(), postgres.StopImmediate) })
	must(p, process.Ready(i.Context()))
}

// options are those of a Pod.
func (p *pods) options(step protocol.SidesWork, fromGreen bool) bluegreen.SidesOptions {
	p.Helper()
	text, err := json.Marshal(p.settings)
	must(p, err)
	settings := filepath.Join(p.house.folder, "sides.json")
	must(p, os.WriteFile(settings, text, 0o600))
	return bluegreen.SidesOptions{Work: step, FromGreen: fromGreen, GreenAuthority: p.folder, ServersFile: p.servers,
		Port: uint16(p.port), Options: pod.Options{Settings: settings, Authority: p.house.folder,
			Run: p.house.folder, Address: "127.0.0.1", Listen: fmt.Sprintf("127.0.0.1:%d", freePort(p.T)),
			Termination: filepath.Join(p.house.folder, "result.json")}}
}

// try runs a Pod, and returns the result that it leaves.
func (p *pods) try(ctx context.Context, step protocol.SidesWork, fromGreen bool) (protocol.SidesResult, error) {
	p.Helper()
	err := bluegreen.Sides(ctx, p.options(step, fromGreen))
	return read[protocol.SidesResult](p.house), err
}

// ends runs a Pod, and returns its result.
func (p *pods) ends(step protocol.SidesWork, fromGreen bool) protocol.SidesResult {
	p.Helper()
	r, err := p.try(p.ctx, step, fromGreen)
	if err != nil || r.Error != "" {
		p.Fatalf("%s: %v: %+v", step, err, r)
	}
	p.Logf("%s: %+v", step, r)
	return r
}

// refuses runs a Pod that finds one thing in the way.
func (p *pods) refuses(step protocol.SidesWork, fromGreen bool, reason string) {
	p.Helper()
	if r := p.ends(step, fromGreen); r.Done || len(r.Refusals) != 1 || r.Refusals[0].Reason != reason {
		p.Errorf("%s: %+v, want %s", step, r, reason)
	}
}

// does runs a Pod whose step is done, twice: the second one finds it done.
func (p *pods) does(step protocol.SidesWork, fromGreen bool) (r protocol.SidesResult) {
	p.Helper()
	for range 2 {
		if r = p.ends(step, fromGreen); !r.Done || r.Broken != "" || len(r.Refusals)+len(r.Differences) > 0 {
			p.Fatalf("%s: %+v", step, r)
		}
	}
	return r
}

// handing is a Pod that changes sides, with the operator that tells it to begin.
type handing struct {
	*pods
	operator *protocol.Client
	ended    chan error
}

// handOver runs the Pod that changes sides.
func (p *pods) handOver(ctx context.Context, fromGreen bool) *handing {
	p.Helper()
	return p.runs(ctx, protocol.SidesChange, fromGreen)
}

// runs is a Pod of a step, while it runs.
func (p *pods) runs(ctx context.Context, step protocol.SidesWork, fromGreen bool) *handing {
	p.Helper()
	o := p.options(step, fromGreen)
	leaf, err := p.house.operator.Issue(naming.IdentityOperator, nil, time.Now())
	must(p, err)
	roots, err := pki.Pool(string(p.house.authority.CertPEM()))
	must(p, err)
	_, port, err := net.SplitHostPort(o.Listen)
	must(p, err)
	number, err := strconv.Atoi(port)
	must(p, err)
	h := &handing{p, protocol.NewClient(pki.ClientTLS(leaf.TLS, roots, naming.IdentitySides), number),
		make(chan error, 1)}
	go func() { h.ended <- bluegreen.Sides(ctx, o) }()
	return h
}

// waits says that the Pod waits to be told to begin. Else it has ended.
func (h *handing) waits() (waits bool) {
	h.Helper()
	h.until("the Pod waits", func() bool {
		found, err := h.operator.Backup(h.ctx, "127.0.0.1")
		waits = err == nil && found.Step == protocol.StepAwaitsBegin
		return waits || len(h.ended) > 0
	})
	return waits
}

// says waits until the Pod says some words of what it does, and whether it has not ended before.
func (h *handing) says(words string) (said bool) {
	h.Helper()
	h.until("the Pod says "+words, func() bool {
		found, err := h.operator.Backup(h.ctx, "127.0.0.1")
		said = err == nil && strings.Contains(found.Step, words)
		return said || len(h.ended) > 0
	})
	return said
}

func (h *handing) begin(upgrade string) error {
	_, err := h.operator.Begin(h.ctx, "127.0.0.1", protocol.UpgradeBegin{ID: upgrade})
	return err
}

// goes waits until the Pod has ended, however it does.
func (h *handing) goes() {
	if err := <-h.ended; err != nil {
		h.Logf("the Pod that hands over: %v", err)
	}
}

// told is the result that the Pod tells, nil where it has ended without.
func (h *handing) told() (told *protocol.SidesResult) {
	h.Helper()
	h.until("the Pod tells its result", func() bool {
		if found, err := h.operator.Backup(h.ctx, "127.0.0.1"); err == nil {
			told = found.Sides
		}
		return told != nil || len(h.ended) > 0
	})
	return told
}

// changes runs the Pod that changes sides, and is the operator that tells it to begin.
func (p *pods) changes(fromGreen bool) {
	p.Helper()
	h := p.handOver(p.ctx, fromGreen)
	h.waits()
	if err := h.begin("another"); err == nil {
		p.Error("it begins for another upgrade")
	}
	must(p, h.begin(id))
	told := h.told()
	must(p, <-h.ended)
	r := read[protocol.SidesResult](p.house)
	p.Logf("changed: %+v", r)
	if told == nil || !told.Done || !r.Done || r.Seconds <= 0 {
		p.Errorf("it has told %+v, and has left %+v", told, r)
	}
}

// comparesWhatIsUndone has a role change its password while the Pod waits for somebody to drop another one: neither
// costs the copy. It returns the dump of blue with the other password.
func (p *pods) comparesWhatIsUndone(dump string) string {
	p.Helper()
	verifier := func() string {
		return p.blue.ask("postgres", "select rolpassword from pg_authid where rolname = 'app'")
	}
	former := verifier()
	p.blue.do("postgres", "create role passing")
	h := p.runs(p.ctx, protocol.SidesCompare, false)
	if !h.says("role passing") {
		p.Error("it does not wait for somebody to undo it")
	}
	p.blue.do("postgres", "alter role app password 'another'")
	p.blue.do("postgres", "drop role passing")
	must(p, <-h.ended)
	if r := read[protocol.SidesResult](p.house); !r.Done || len(r.Refusals) > 0 {
		p.Errorf("it says %+v", r)
	}
	return strings.Replace(dump, former, verifier(), 1)
}

// The Pods of an upgrade do all its steps over TLS, with the authorities of both sides, and each step can be done
// again.
func TestLongThePodsOfSidesDoTheirWork(t *testing.T) {
	s := newBlue(t, 17)
	p := s.pods()
	s.stopBlue(syscall.SIGINT)
	p.serve(s.blue, blueAddress, p.house.authority, fmt.Sprintf("archive_mode = on\n"+
		"archive_command = 'cp %%p %[1]s/part && mv %[1]s/part %[1]s/%%f'\n", s.archive))
	s.blue.do("postgres", "revoke connect on database shop from public")
	before := s.blue.dump()

	s.blue.do("shop", "create table no_key (n int)")
	p.refuses(protocol.SidesPublish, false, "NoReplicaIdentity")
	if n := s.blue.ask("postgres", "select count(*) from pg_replication_slots"); n != "0" {
		t.Errorf("there are %s slots", n)
	}
	s.blue.do("shop", "drop table no_key")
	p.settings.Position = p.does(protocol.SidesPublish, false).Position
	position, err := wal.ParseLSN(p.settings.Position)
	must(t, err)
	c := &clients{sides: s}
	c.write(s.blue)
	s.copyTo(position, 17)
	s.stopGreen(syscall.SIGINT)
	must(t, os.Remove(filepath.Join(s.green.Data.Path(), "postgresql.auto.conf")))
	p.serve(s.green, greenAddress, p.green, "")
	p.settings.Green = protocol.SidesOf{Hosts: []string{greenAddress}, Given: string(p.house.authority.CertPEM())}

	p.does(protocol.SidesFollow, false)
	if r := p.does(protocol.SidesCompare, false); r.Tables == 0 || r.Rows == 0 {
		t.Errorf("%+v", r)
	}
	before = p.comparesWhatIsUndone(before)
	p.does(protocol.SidesPrepare, false)
	c.stop()
	p.changes(false)
	c.hasAll(s.green)
	c.write(s.green)
	p.does(protocol.SidesSettle, true)
	p.does(protocol.SidesFollow, true)
	p.does(protocol.SidesCompare, true)
	p.does(protocol.SidesLeave, true)
	s.untilWritten(c, 20)
	p.does(protocol.SidesReturn, true)
	p.refuses(protocol.SidesChange, true, bluegreen.NotCompared)
	p.does(protocol.SidesCompare, true)

	// What is in the way is told before clients are away.
	s.green.do("shop", "create table app.later (n int primary key)")
	p.refuses(protocol.SidesChange, true, "SchemaChanged")
	s.green.do("shop", "drop table app.later;\ntruncate toban_sides.noted")
	c.stop()
	p.changes(true)
	c.hasAll(s.blue)

	// A row that differs is named.
	s.blue.do("shop", "update app.orders set n = 4711 where id = 17")
	if r := p.ends(protocol.SidesCompare, true); len(r.Differences) != 1 ||
		!strings.Contains(r.Differences[0], "only blue has 17") {
		t.Errorf("%+v", r)
	}
	// One whose slots are gone is broken.
	s.green.do("postgres", "select pg_terminate_backend(active_pid) from pg_replication_slots")
	must(t, s.back.Publisher().Remove(s.ctx))
	if r := p.ends(protocol.SidesFollow, true); r.Done || r.Broken == "" {
		t.Errorf("%+v", r)
	}
	p.does(protocol.SidesCancel, true)
	if after := s.blue.dump(); after != before {
		t.Errorf("cancelled, the schema is another one:\n%s", difference(before, after))
	}
	if n := s.green.ask("postgres", "select count(*) from pg_roles where rolname = 'toban_link'"); n != "0" {
		t.Error("the role is on green still")
	}
}
