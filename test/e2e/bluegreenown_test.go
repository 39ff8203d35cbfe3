//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// A SampleDB of the longest name, with a reader, whose instances pass clients on, goes to another major version by a
// second side, and back. Who only reads is led to the reader of the side that serves.
func TestLongBlueGreenWithAReaderAndARelay(t *testing.T) {
	s := beginAlone(t)
	name := "shop-" + strings.Repeat("x", naming.MaxName-len("shop-"))
	s.apply(twoSided(name, 2, "service: {route: Relay}", "readers: {count: 1, only: true}"))
	s.ready(name)
	s.leadsTo(name, 2)
	s.readsOn(name, name)
	s.condition(name, v1.ConditionArchiving, "True", "")
	rows := s.makeItems(s.access(name, naming.ReadWriteService(name)))
	check := s.writing(name)
	before := s.traces(name, rows.access.Database)

	s.patch(name, `{"version":18}`)
	s.sides(name, v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn(name, naming.Green(name), 18)
	rows.add(s, 20)
	s.readsOn(name, naming.Green(name))
	s.wayBackIs(name, v1.WayBackBack)
	s.run("annotate", "sampledb", name, naming.AnnotationUpgradeBack+"=now")
	s.sides(name, v1.UpgradeFailed, v1.SideBlue)
	s.clientsAreOn(name, name, 17)
	rows.add(s, 5)
	rows.expect(s, "17:15 18:20")
	s.noSecondSide(name, before, rows.access.Database)
	s.leadsTo(name, 2)
	s.readsOn(name, name)
	check(outside.SidesChange)
}

// readsOn waits until NAME-ro leads to the reader of a side.
func (s *story) readsOn(name, side string) {
	s.Helper()
	want := naming.Reader(side, 0)
	access := s.access(name, naming.ReadOnlyService(name))
	s.until(func(ctx context.Context) error {
		got, err := access.Ask(ctx, "SELECT current_setting('cluster_name')")
		if err == nil && got != want {
			err = fmt.Errorf("who only reads is led to %s, not to %s", got, want)
		}
		return err
	})
}

// The server of a PostgreSQL goes to another major version by a second side, and comes home: its database is there all
// the time by the connection string of its Secret, and what is declared meanwhile is made when that has ended.
func TestLongBlueGreenOfAPostgreSQL(t *testing.T) {
	s := beginAlone(t)
	s.apply(pgOfItsOwn)
	s.pgReason("foodb", "Ready")
	s.condition("foodb", v1.ConditionArchiving, "True", "")
	rows := s.makeItems(s.access("foodb", naming.ReadWriteService("foodb")))
	s.run("patch", "pg", "foodb", "--type=merge", "-p", `{"spec":{"version":18}}`)
	s.sides("foodb", v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn("foodb", naming.Green("foodb"), 18)
	rows.add(s, 20)
	s.run("patch", "pg", "foodb", "--type=merge", "-p", `{"spec":{"connectionLimit":7}}`)
	s.pgReason("foodb", "ServerNotReady")
	s.run("annotate", "sampledb", "foodb", naming.AnnotationAcceptUpgrade+"=yes")
	s.sides("foodb", v1.UpgradeUpgraded, v1.SideBlue)
	s.clientsAreOn("foodb", "foodb", 18)
	rows.add(s, 5)
	rows.expect(s, "17:10 18:25")
	s.pgReason("foodb", "Ready")
	if limit := s.ask("foodb", "SELECT datconnlimit FROM pg_database WHERE datname = 'foo'"); limit != "7" {
		t.Errorf("the database takes %s connections", limit)
	}
}

const pgOfItsOwn = `
apiVersion: exp.wheel.jp/v1
kind: PostgreSQL
metadata: {name: foodb}
spec:
  db: foo
  user: foo
  password: foodb-password
  version: 17
  storage: {size: 512Mi}
  upgrade: {strategy: BlueGreen}
---
apiVersion: v1
kind: Secret
metadata: {name: foodb-password}
stringData: {postgresql_password: secret}
`
