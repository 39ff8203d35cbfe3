package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/pod"
	"toban.dev/internal/work/upgrade"
)

// house has what the Pods of a SampleDB are given.
type house struct {
	*testing.T
	folder              string
	authority, operator *pki.Authority
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, folder: t.TempDir()}
	var err error
	h.authority, err = pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "db", time.Now())
	must(t, err)
	h.operator, err = pki.NewAuthority(bytes.Repeat([]byte{8}, 32), "operator", time.Now())
	must(t, err)
	key, err := h.authority.KeyPEM()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(h.folder, naming.KeyCA), h.authority.CertPEM(), 0o600))
	must(t, os.WriteFile(filepath.Join(h.folder, naming.KeyCAKey), key, 0o600))
	return h
}

// pod are the options of a Pod with settings.
func (h *house) pod(i *instance, s protocol.UpgradeSettings) pod.Options {
	h.Helper()
	h.Setenv("PATH", programs(h.T, s.To).Dir+":"+os.Getenv("PATH")) // as in the new image
	s.ID, s.Instance, s.From, s.Operator = id, "db-0", i.Programs.Major, string(h.operator.CertPEM())
	text, err := json.Marshal(s)
	must(h, err)
	settings := filepath.Join(h.folder, "settings.json")
	must(h, os.WriteFile(settings, text, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(h, err)
	must(h, listener.Close())
	return pod.Options{Settings: settings, Authority: h.folder, Run: i.Server.Run, Address: "127.0.0.1",
		Listen: listener.Addr().String(), Termination: filepath.Join(h.folder, "result.json")}
}

// client is that of somebody with a certificate of an authority.
func (h *house) client(of *pki.Authority, identity, listen string) *protocol.Client {
	h.Helper()
	leaf, err := of.Issue(identity, nil, time.Now())
	must(h, err)
	roots, err := pki.Pool(string(h.authority.CertPEM()))
	must(h, err)
	_, port, err := net.SplitHostPort(listen)
	must(h, err)
	var number int
	_, err = fmt.Sscan(port, &number)
	must(h, err)
	return protocol.NewClient(pki.ClientTLS(leaf.TLS, roots, naming.IdentityUpgrade), number)
}

func read[Result any](h *house) (r Result) {
	h.Helper()
	text, err := os.ReadFile(filepath.Join(h.folder, "result.json"))
	must(h, err)
	if len(text) > 4096 {
		h.Errorf("the result has %d bytes, of which the kubelet keeps 4096", len(text))
	}
	must(h, json.Unmarshal(text, &r))
	return r
}

// former is the folder of the collected programs.
func formerFolder(t *testing.T, major int) string {
	t.Helper()
	collected(t, major)
	return collectedBy[major]
}

// A Pod touches nothing before the operator tells it to begin, and nobody else can.
func TestAPodBeginsWhenTheOperatorSaysSo(t *testing.T) {
	h, i := newHouse(t), newInstance(t, 15, "")
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	options := upgrade.Options{Options: h.pod(i, protocol.UpgradeSettings{To: 18}),
		Former: formerFolder(t, 15), Volume: i.Data.Volume}
	before := listing(t, i.Data.Volume)
	ended := make(chan error, 1)
	go func() { ended <- upgrade.Run(t.Context(), options) }()
	early := false
	operator := h.client(h.operator, naming.IdentityOperator, options.Listen)
	i.eventually("it waits", func() bool {
		p, err := operator.Backup(t.Context(), "127.0.0.1")
		early = len(ended) > 0
		return early || err == nil && p.Step == protocol.StepAwaitsBegin
	})
	if early {
		t.Fatal(<-ended)
	}
	stranger := h.client(h.authority, naming.IdentityInstance, options.Listen)
	if _, err := stranger.Begin(t.Context(), "127.0.0.1", protocol.UpgradeBegin{ID: id}); err == nil {
		t.Error("an instance has begun it")
	}
	if _, err := operator.Begin(t.Context(), "127.0.0.1", protocol.UpgradeBegin{ID: "another"}); err == nil {
		t.Error("it begins for another upgrade")
	}
	if after := listing(t, i.Data.Volume); !slices.Equal(before, after) {
		t.Errorf("it has touched the volume: %v, was %v", after, before)
	}
	stop(syscall.SIGINT)
	for range 2 {
		_, err := operator.Begin(t.Context(), "127.0.0.1", protocol.UpgradeBegin{ID: id})
		must(t, err)
	}
	must(t, <-ended)
	r := read[protocol.UpgradeResult](h)
	if r.Error != "" || r.Method != protocol.MethodLink || !strings.HasPrefix(r.From, "15.") || len(r.Steps) != 5 {
		t.Errorf("%+v", r)
	}
	must(t, upgrade.Back(t.Context(), options))
	if r := read[protocol.UpgradeBack](h); r.Error != "" || r.Forked {
		t.Errorf("%+v", r)
	}
	i.start(i.Programs, i.Data.Path())
	i.has(want)
}

func listing(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (i *instance) eventually(what string, so func() bool) {
	i.Helper()
	for end := time.Now().Add(deadline); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			i.Fatalf("it does not come true that %s", what)
		}
	}
}

// serve has the server of an instance take the Pods of a SampleDB, as its agent would have it.
func (h *house) serve(i *instance, programs postgres.Programs) {
	h.Helper()
	leaf, err := h.authority.Issue(naming.IdentityInstance, []string{"127.0.0.1"}, time.Now())
	must(h, err)
	for file, content := range map[string][]byte{
		postgres.FileAuthority: h.authority.CertPEM(), postgres.FileCertificate: leaf.CertPEM,
		postgres.FileKey: leaf.KeyPEM, postgres.FileClients: append(leaf.CertPEM, leaf.KeyPEM...),
	} {
		must(h, os.WriteFile(filepath.Join(i.Server.Run, file), content, 0o600))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(h, err)
	port, _ := listener.Addr().(*net.TCPAddr)
	must(h, listener.Close())
	i.Programs, i.Listen, i.Port = programs, "127.0.0.1", port.Port
	parameters := map[string]string{"max_prepared_transactions": "5"}
	must(h, i.Configure(postgres.Settings{Name: "db-0", Parameters: parameters}))
	process, err := i.Start(i.Context(), &testLog{T: i.T})
	must(h, err)
	h.Cleanup(func() { process.Stop(context.Background(), postgres.StopImmediate) })
	must(h, process.Ready(i.Context()))
}

// check runs the Pod of a check.
func (h *house) check(i *instance, to int, parameters map[string]string) protocol.UpgradeCheck {
	h.Helper()
	o := h.pod(i, protocol.UpgradeSettings{To: to, Hosts: []string{"127.0.0.1"}, Parameters: parameters})
	run, err := os.MkdirTemp("", "toban-up-")
	must(h, err)
	h.Cleanup(func() { _ = os.RemoveAll(run) })
	o.Run = run
	err = upgrade.Check(i.Context(), upgrade.CheckOptions{
		Options: o, Former: formerFolder(i.T, i.Programs.Major), Scratch: h.TempDir(),
		Volume: i.Data.Volume, Port: uint16(i.Port)})
	r := read[protocol.UpgradeCheck](h)
	if err != nil {
		h.Fatalf("%v: %+v", err, r)
	}
	return r
}

// A check says by name what is in the way of an upgrade, while the database serves, and changes nothing.
func TestCheck(t *testing.T) {
	h := newHouse(t)
	i := newInstance(t, 15, "")
	folder := formerFolder(t, 15)
	_, old, err := former.Open(folder)
	must(t, err)
	// An extension that only the old image has.
	share := filepath.Join(folder, "usr/share/postgresql/15/extension")
	must(t, os.WriteFile(filepath.Join(share, "oldonly.control"), []byte("default_version = '1.0'\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(share, "oldonly--1.0.sql"), []byte("select 1;\n"), 0o600))
	h.serve(i, old)
	i.fill()
	ready := h.check(i, 18, nil)
	t.Logf("%+v", ready)
	if len(ready.Refusals) > 0 || ready.Databases != 4 || len(ready.Steps) < 5 ||
		ready.Catalogs < 10<<20 || ready.Bytes < ready.Catalogs {
		t.Errorf("a sound one: %+v", ready)
	}
	if r := h.check(i, 18, map[string]string{"reserved_connections": "97"}); len(r.Refusals) != 1 ||
		r.Refusals[0].Reason != "ParameterRejected" ||
		!strings.Contains(r.Refusals[0].Objects[0], "must be less than \"max_connections\"") {
		t.Errorf("parameters with which it does not start: %+v", r)
	}
	h.readersAreNotInTheWay(i)
	i.do("shop", `create extension oldonly;
create table refers (id int, what regproc);
create table information_schema.mine (id int primary key);
create function pg_catalog.mine() returns int language sql as 'select 1';
create conversion pg_catalog.mine for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8;
create statistics information_schema.mine on id, item from orders;
grant pg_signal_backend to pg_monitor;
grant create on tablespace pg_default to app;
grant insert on information_schema.tables to app;
revoke select on information_schema.views from public;
revoke execute on function information_schema._pg_expandarray(anyarray) from public;
revoke usage on schema information_schema from public;
set allow_system_table_mods = on;
create table parted (n int) partition by list (n);
create table parted_1 partition of parted for values in (1);
update pg_inherits set inhdetachpending = true where inhrelid = 'parted_1'::regclass;
update pg_attribute set attoptions = '{pg_other=1}' where attrelid = 'refers'::regclass and attname = 'id'`)
	// Before the transaction: a slot waits for all that have begun.
	i.do("postgres", `select pg_create_logical_replication_slot('consumer', 'pgoutput')`)
	i.do("shop", `begin; insert into orders (item) values ('x'); prepare transaction 'left'`)
	r := h.check(i, 18, map[string]string{"old_snapshot_threshold": "1h"})
	t.Logf("%+v", r)
	var reasons []string
	for _, f := range r.Refusals {
		reasons = append(reasons, f.Reason)
	}
	for _, want := range []string{
		"PreparedTransactions", "LogicalSlots", "ReferenceColumns", "ColumnOptions", "SystemSchemas",
		"SystemRights", "ExtensionMissing", "TrialFailed", "DetachPending",
	} {
		if !slices.Contains(reasons, want) {
			t.Errorf("it does not say %s: %v", want, reasons)
		}
	}
	for reason, want := range map[string][]string{
		"DetachPending": {"shop: public.parted_1"},
		"SystemSchemas": {"shop: conversion pg_catalog.mine", "shop: function pg_catalog.mine()",
			"shop: statistics object information_schema.mine", "shop: table information_schema.mine"},
		"SystemRights": {"membership of pg_monitor in pg_signal_backend", "tablespace pg_default",
			"shop: rights to information_schema._pg_expandarray(anyarray)",
			"shop: rights to information_schema.tables", "shop: rights to information_schema.views",
			"shop: rights to the schema information_schema"},
	} {
		if i := slices.Index(reasons, reason); i >= 0 && !slices.Equal(r.Refusals[i].Objects, want) {
			t.Errorf("%s is said of %q, want %q", reason, r.Refusals[i].Objects, want)
		}
	}
}

// readersAreNotInTheWay gives a role what readers are usually given, and takes back all that was given: neither refuses
// an upgrade, and what readers lose by it is told.
func (h *house) readersAreNotInTheWay(i *instance) {
	h.Helper()
	i.do("shop", `create role reader;
grant usage on schema information_schema to reader;
grant select on all tables in schema information_schema to reader;
grant execute on all functions in schema information_schema to reader;
grant select (table_name) on information_schema.tables to reader;
grant insert on information_schema.sql_parts, information_schema.tables to reader;
revoke insert on information_schema.sql_parts, information_schema.tables from reader;
revoke usage on type information_schema.yes_or_no from public;
grant usage on type information_schema.yes_or_no to public;
grant create on tablespace pg_default, pg_global to reader;
revoke create on tablespace pg_default, pg_global from reader;
alter tablespace pg_default set (random_page_cost = 1.1)`)
	r := h.check(i, 18, nil)
	if len(r.Refusals) > 0 {
		h.Errorf("what readers are given is in the way: %+v", r.Refusals)
	}
	is := func(f protocol.UpgradeFinding) bool { return f.Reason == "SystemSettings" }
	at := slices.IndexFunc(r.Warnings, is)
	if at < 0 || r.Warnings[at].Objects[0] != "tablespace pg_default (random_page_cost=1.1)" ||
		!slices.Contains(r.Warnings[at].Objects, "shop: rights to information_schema.sql_parts") {
		h.Errorf("it does not tell what is lost: %+v", r.Warnings)
	}
	i.do("shop", "drop owned by reader;\ndrop role reader;\nalter tablespace pg_default reset (random_page_cost)")
	r = h.check(i, 18, nil)
	if len(r.Refusals) > 0 || slices.ContainsFunc(r.Warnings, is) {
		h.Errorf("what was taken back is told: %+v", r)
	}
}

// What pg_upgrade's own check refuses ends an upgrade before anything is changed, with its words.
func TestARefusedUpgradeSaysWhy(t *testing.T) {
	i := newInstance(t, 15, "")
	stop := i.start(i.Programs, i.Data.Path())
	i.fill()
	i.do("shop", `create table refers (id int, what regproc)`)
	want := i.facts()
	stop(syscall.SIGINT)
	o, _ := i.process(18, "", "", false)
	t.Log(o.Error)
	if !o.Refused || !strings.Contains(o.Error, "public.refers.what") || strings.Contains(o.Error, i.Data.Volume) {
		t.Errorf("it says %q", o.Error)
	}
	i.back(18, want)
}
