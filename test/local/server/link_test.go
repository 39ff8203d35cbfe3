package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"toban.dev/internal/postgres"
	"toban.dev/internal/work/bluegreen"
)

const (
	// notAllowed is invalid_authorization_specification: a line of pg_hba.conf rejects it.
	notAllowed = "28000"
	linkSlot   = "toban_to_green_5"
)

// enter logs in over TCP, with TLS or without, for a kind of replication or none ("").
func (n *node) enter(role, database, replication string, secret bool) (*pgconn.PgConn, error) {
	n.Helper()
	config, err := pgconn.ParseConfig("sslmode=disable")
	must(n, err)
	config.Host, config.Port, config.User, config.Password, config.Database = n.Listen, uint16(n.Port), role,
		role+"'s password", database
	if secret {
		config.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	}
	if replication != "" {
		config.RuntimeParams["replication"] = replication
	}
	conn, err := pgconn.ConnectConfig(within(n, deadline), config)
	if err == nil {
		n.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// configure has the server run with what is in its settings.
func (n *node) configure() {
	n.Helper()
	s := n.session()
	defer s.Close()
	before, err := s.LoadTime(n.Context())
	must(n, err)
	must(n, n.Configure(n.settings))
	must(n, n.process.Reload())
	n.eventually("the configuration is read", func() bool {
		at, err := s.LoadTime(n.Context())
		must(n, err)
		return at.After(before)
	})
}

// The link gets into a closed server, by its password and TLS, and it is not ended with the clients. It can't copy
// the data, nor come without TLS, whatever a user's own lines let in.
func TestTheLinkGetsIntoAClosedServer(t *testing.T) {
	n := server(t)
	n.do("create role app login password 'app''s password'")
	n.do("create database shop")
	must(t, bluegreen.EnsureRole(t.Context(), bluegreen.Side{Connect: func(context.Context, string) (*pgx.Conn, error) {
		return n.person("toban init"), nil
	}}))
	n.do("alter role toban_link password 'toban_link''s password'")
	n.settings.HBA = []string{"host all all all trust", "host replication all all trust"}
	n.configure()
	client, err := n.enter("app", "shop", "", true)
	must(t, err)
	link, err := n.enter("toban_link", "shop", "database", true)
	must(t, err)
	n.settings.Closed = true
	n.configure()
	s := n.session()
	defer s.Close()
	if ended, err := s.EndClients(t.Context()); err != nil || ended != 1 {
		t.Errorf("%d sessions were ended, %v", ended, err)
	}
	n.eventually("no client is there", func() bool {
		ended, err := s.EndClients(t.Context())
		must(t, err)
		return ended == 0
	})
	if _, err := client.Exec(t.Context(), "select 1").ReadAll(); err == nil {
		t.Error("the client is still there")
	}
	if _, err := link.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err != nil {
		t.Errorf("the link was ended: %v", err)
	}
	for _, closed := range []bool{true, false} {
		n.settings.Closed = closed
		n.configure()
		for _, c := range []struct {
			role, replication string
			secret            bool
			want              string
		}{
			{"toban_link", "database", true, ""}, {"toban_link", "", true, ""},
			{"toban_link", "database", false, notAllowed}, {"toban_link", "true", true, notAllowed},
			{"toban_link", "true", false, notAllowed}, {"app", "", true, map[bool]string{true: notAllowed}[closed]},
		} {
			if _, err := n.enter(c.role, "shop", c.replication, c.secret); code(err) != c.want {
				t.Errorf("closed: %t, %+v: %v", closed, c, err)
			}
		}
	}
	n.settings.Closed = true
	n.configure()
	// Who follows looks for a server that takes writes, as libpq does.
	follows, err := n.enter("toban_link", "shop", "database", true)
	must(t, err)
	if got := follows.ParameterStatus("default_transaction_read_only"); got != "off" {
		t.Errorf("who follows finds a server that is read only: %q", got)
	}
	n.settings.Closed = false
	n.configure()
	n.do("alter role toban_link password 'another'")
	if _, err := n.enter("toban_link", "shop", "database", true); code(err) != badLogin {
		t.Errorf("with a wrong password: %v", err)
	}
}

// The slots of a link come along to a standby without a restart, and are there when it is promoted: after an orderly
// end of the primary, and while a primary hangs, for whose answer what brings them along waits. The former primary
// lets go of its own, so that they come along to it too.
func TestSlotsOfALinkComeAlong(t *testing.T) {
	for _, major := range []int{17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			all := nodesOf(t, 2, major)
			for _, n := range all {
				n.along = true
			}
			a, b := all[0], all[1]
			a.found()
			b.clone(a)
			b.along = false
			b.follow(a, 1)
			b.streams()
			started := b.ask("select pg_postmaster_start_time()")
			b.along = true
			b.follow(a, 1)
			a.do("select pg_create_logical_replication_slot('" + linkSlot + "', 'pgoutput', false, false, true)")
			b.slotComes(a)
			if b.ask("select pg_postmaster_start_time()") != started {
				t.Error("the standby was restarted")
			}

			a.stop(postgres.StopFast)
			b.succeed(2)
			b.slots(a)
			a.follow(b, 2)
			a.streams()
			a.slotComes(b)

			must(t, b.process.Hang())
			a.eventually("it waits for an answer", func() bool {
				return a.ask("select wait_event from pg_stat_activity where backend_type = 'slotsync worker'") ==
					"LibpqwalreceiverReceive"
			})
			a.succeed(3)
			must(t, b.process.Continue())
		})
	}
}

// slotComes waits until the slot has come along from a primary.
func (n *node) slotComes(from *node) {
	n.Helper()
	s := n.session()
	defer s.Close()
	n.eventually("the slot has come along", func() bool {
		from.do("select pg_log_standby_snapshot()")
		from.do(fmt.Sprintf("select pg_replication_slot_advance('%s', pg_current_wal_lsn())", linkSlot))
		_, err := s.KeepLinkSlots(n.Context())
		must(n, err)
		return n.ask("select count(*) from pg_replication_slots where synced and failover and not temporary") == "1"
	})
	if synced, err := s.KeepLinkSlots(n.Context()); err != nil || !synced {
		n.Errorf("it says that none comes along: %v", err)
	}
}

// succeed promotes a standby, which has the slot.
func (n *node) succeed(term uint64) {
	n.Helper()
	must(n, n.Revoke(term))
	n.follow(nil, 0)
	must(n, n.process.StopReceiving(within(n, deadline)))
	n.promote()
	s := n.session()
	defer s.Close()
	must(n, s.EnsureSlots(n.Context(), nil))
	_, err := s.KeepLinkSlots(n.Context())
	must(n, err)
	got := n.ask("select wal_status from pg_replication_slots where slot_name = '" + linkSlot + "'")
	if got != "reserved" {
		n.Errorf("after the promotion the slot is %q", got)
	}
}

// The slot of a link that keeps too much WAL is dropped, also where somebody holds it. Those of standbys and of
// applications stay.
func TestALinkThatKeepsTooMuchIsGivenUp(t *testing.T) {
	n := server(t)
	s := n.session()
	defer s.Close()
	must(t, s.EnsureSlots(t.Context(), []string{"toban_db_1"}))
	for _, name := range []string{linkSlot, "toban_to_green_6", "mine"} {
		n.do(fmt.Sprintf("select pg_create_logical_replication_slot('%s', 'pgoutput')", name))
	}
	n.do("create publication toban_to_green")
	n.do("create role toban_link login replication password 'toban_link''s password'")
	n.do("grant connect on database postgres to toban_link")
	link, err := n.enter("toban_link", "postgres", "database", true)
	must(t, err)
	link.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION SLOT " + linkSlot +
		" LOGICAL 0/0 (proto_version '1', publication_names 'toban_to_green')"})
	must(t, link.Frontend().Flush())
	left := func() string {
		return n.ask("select string_agg(slot_name, ' ' order by slot_name) from pg_replication_slots")
	}
	n.eventually("the link reads", func() bool {
		return n.ask("select count(*) from pg_replication_slots where active") == "1"
	})
	if dropped, err := s.GiveUpLink(t.Context(), 256<<20); err != nil || len(dropped) > 0 {
		t.Errorf("%q was dropped, which keeps little, %v", dropped, err)
	}
	n.do("select pg_switch_wal()")
	n.do("checkpoint")
	if dropped, err := s.GiveUpLink(t.Context(), 1<<20); err != nil || len(dropped) != 2 {
		t.Errorf("%q was dropped, %v", dropped, err)
	}
	if got := left(); got != "mine toban_db_1" {
		t.Errorf("left are %s", got)
	}
}
