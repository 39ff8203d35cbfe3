//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// One annotation gives the application another password, under load. Sessions that are open stay, the new password
// lets in, the former one does not, and nothing has restarted.
func TestRotation(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	s.ready("shop")
	before := s.access("shop", naming.ReadWriteService("shop"))
	writer, err := outside.StartWriter(s.ctx, before)
	must(t, err)
	defer writer.Stop()
	s.rowsAtLeast("shop", 50)
	session, err := before.Connect(s.ctx)
	must(t, err)
	defer session.Close(s.ctx)
	backend, started := backendOf(s, session), s.startedAt("shop")

	s.run("annotate", "sampledb", "shop", naming.AnnotationRotatePassword+"=now")
	s.rotated("shop", 1)
	after := s.access("shop", naming.ReadWriteService("shop"))
	if after.Password == before.Password {
		t.Fatal("the Secret has the former password")
	}
	if _, err := after.Ask(s.ctx, "SELECT 1"); err != nil {
		t.Errorf("the new password does not let in: %v", err)
	}
	_, err = before.Ask(s.ctx, "SELECT 1")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" { // invalid_password
		t.Errorf("the former password: %v", err)
	}
	if now := backendOf(s, session); now != backend {
		t.Errorf("the session had the process %d and has %d", backend, now)
	}
	if now := s.startedAt("shop"); now != started {
		t.Errorf("the servers started at %s, and before the rotation at %s", now, started)
	}
	// The writer goes on in its session: it could not open another one.
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	writer.Moved(after)
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	t.Logf("no write for %s; %d rows acknowledged", writer.Outage(), writer.Acknowledged())

	// A standby knows the new password, too, and so does one that takes over.
	s.switchOver("shop")
	s.until(func(ctx context.Context) error {
		_, err := s.access("shop", naming.ReadOnlyService("shop")).Ask(ctx, "SELECT 1")
		return err
	})
}

// rotated waits until the password of an epoch is the one.
func (s *story) rotated(name string, epoch int64) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err == nil && (db.Status.Password == nil || db.Status.Password.Epoch != epoch) {
			err = fmt.Errorf("the password is %+v, want epoch %d", db.Status.Password, epoch)
		}
		return err
	})
	s.condition(name, v1.ConditionPasswordRotated, "True", v1.ReasonRotated)
}

// backendOf is the process of a session. It fails where the session has ended.
func backendOf(s *story, session *pgx.Conn) (pid int) {
	s.Helper()
	must(s.T, session.QueryRow(s.ctx, "SELECT pg_backend_pid()").Scan(&pid))
	return pid
}

// startedAt is when the servers of three instances were started.
func (s *story) startedAt(name string) (at string) {
	s.Helper()
	for i := range 3 {
		since, err := s.inside(naming.Instance(name, i), "SELECT pg_postmaster_start_time()")
		must(s.T, err)
		at += since + "; "
	}
	return at
}
