//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// The page's own manifest says nothing about backups. Deleted by mistake, it comes back with its rows, its roles and
// their passwords, and once more after that.
func TestUndelete(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2))
	primary := s.ready("shop").Status.Primary
	s.sql("shop", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	if _, err := s.inside(primary, "CREATE ROLE alice LOGIN PASSWORD 'of alice'"); err != nil {
		t.Fatal(err)
	}
	before := s.access("shop", naming.ReadWriteService("shop"))
	if out := s.toban("undelete"); !strings.Contains(out, "No deleted SampleDB") {
		t.Errorf("while it is there, undelete lists\n%s", out)
	}
	for round := 2; round <= 3; round++ {
		s.run("delete", "sampledb", "shop", "--timeout=4m")
		s.claim("shop", 0, false)
		if out := s.toban("undelete"); !strings.Contains(out, "shop-final-") {
			t.Errorf("undelete lists\n%s", out)
		}
		s.toban("undelete", "shop")
		s.ready("shop")
		s.sql("shop", fmt.Sprintf("INSERT INTO kept VALUES (%d)", round))
		if after := s.access("shop", naming.ReadWriteService("shop")); after.Password != before.Password {
			t.Error("the application's password is another one")
		}
	}
	s.kept("shop", "1,2,3")
	alice := s.access("shop", naming.ReadWriteService("shop"))
	alice.User, alice.Password = "alice", "of alice"
	if who, err := alice.Ask(s.ctx, "SELECT current_user"); err != nil || who != "alice" {
		t.Errorf("alice can't log in any more: %q, %v", who, err)
	}
	if spec := s.run("get", "sampledb", "shop", "-o", "jsonpath={.spec}"); strings.Contains(spec, "restoreFrom") {
		t.Errorf("the spec is not that of before: %s", spec)
	}
}

// What a PostgreSQL had made comes back as that PostgreSQL.
func TestUndeleteOfAPostgreSQL(t *testing.T) {
	s := begin(t)
	s.apply(articleDatabase + "---\n" + articleSecret)
	s.pgReason("foodb", "Ready")
	s.sql("foodb", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.run("delete", "postgresql", "foodb", "--timeout=4m")
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "sampledb/foodb")
		if err == nil && there {
			err = fmt.Errorf("the SampleDB foodb is still there")
		}
		return err
	})
	s.toban("undelete", "foodb")
	s.pgReason("foodb", "Ready")
	must(t, outside.Until(s.ctx, patience, func(ctx context.Context) error {
		access, err := s.Access(ctx, "foodb", naming.ReadWriteService("foodb"))
		if err != nil {
			return err
		}
		n, err := access.Ask(ctx, "SELECT n::text FROM kept")
		if err == nil && n != "1" {
			err = fmt.Errorf("kept has %q", n)
		}
		return err
	}))
}
