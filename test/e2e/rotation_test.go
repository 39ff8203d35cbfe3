//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// rotates gives the application another password, under load. Sessions that are open stay, the new password lets in,
// the former one does not, and nothing has restarted.
func (s *story) rotates(name string) {
	s.Helper()
	before := s.access(name, naming.ReadWriteService(name))
	writer, err := outside.StartWriter(s.ctx, before)
	must(s.T, err)
	defer writer.Stop()
	s.rowsAtLeast(name, 50)
	session, err := before.Patient().Connect(s.ctx)
	must(s.T, err)
	defer session.Close(s.ctx)
	backend, started := backendOf(s, session), s.startedAt(name)

	s.run("annotate", "sampledb", name, naming.AnnotationRotatePassword+"=now")
	s.rotated(name, 1)
	after := s.access(name, naming.ReadWriteService(name))
	if after.Password == before.Password {
		s.Fatal("the Secret has the former password")
	}
	if _, err := after.Patient().Ask(s.ctx, "SELECT 1"); err != nil {
		s.Errorf("the new password does not let in: %v", err)
	}
	_, err = before.Patient().Ask(s.ctx, "SELECT 1")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" { // invalid_password
		s.Errorf("the former password: %v", err)
	}
	if now := backendOf(s, session); now != backend {
		s.Errorf("the session had the process %d and has %d", backend, now)
	}
	if now := s.startedAt(name); now != started {
		s.Errorf("the servers started at %s, and before the rotation at %s", now, started)
	}
	// The writer goes on in its session: it could not open another one.
	s.rowsAtLeast(name, s.count(name)+50)
	writer.Stop()
	writer.Use(after)
	lost, err := writer.Lost(s.ctx)
	must(s.T, err)
	if len(lost) > 0 {
		s.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	s.inTime(writer, outside.Undisturbed)

	// A standby knows the new password, too, and so does one that takes over.
	s.switchOver(name)
	s.until(func(ctx context.Context) error {
		_, err := s.access(name, naming.ReadOnlyService(name)).Ask(ctx, "SELECT 1")
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
