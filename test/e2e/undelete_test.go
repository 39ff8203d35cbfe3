//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
	"toban.dev/test/stores/servers"
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
	if who, err := alice.Patient().Ask(s.ctx, "SELECT current_user"); err != nil || who != "alice" {
		t.Errorf("alice can't log in any more: %q, %v", who, err)
	}
	if spec := s.run("get", "sampledb", "shop", "-o", "jsonpath={.spec}"); strings.Contains(spec, "restoreFrom") {
		t.Errorf("the spec is not that of before: %s", spec)
	}
}

// What a PostgreSQL had made comes back as that PostgreSQL. TestUndelete brings a SampleDB back in the same way.
func TestLongUndeleteOfAPostgreSQL(t *testing.T) {
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

// A namespace is deleted with all that is in it, by mistake. The store, which is elsewhere, has the rest: the SampleDB
// comes back with its spec, its rows and its password. No row is lost that was committed, though a commit may wait for
// the archive for an hour. Other tests of this are in test/local: the last primary archives the rest, and a manifest is
// found again by who has nothing but the store.
func TestLongANamespaceThatIsGoneComesBack(t *testing.T) {
	s := begin(t)
	s.run("create", "secret", "generic", "s3-users", "--from-literal=users.json="+servers.UsersOfS3(t))
	s.apply(s3Server)
	s.run("wait", "pod/s3", "--for=condition=Ready", "--timeout=2m")
	servers.LetIn(t, s.address("s3"), map[string]string{"writer": "instances"})
	key, err := age.GenerateX25519Identity()
	must(t, err)
	secrets := credentials("writer", "secret of writer") + "---\n" + archiveKey(key)
	manifest := withBackup("main", 2, fmt.Sprintf(`store:
  s3:
    bucket: archive
    endpoint: http://s3.%s:7070
    pathStyle: true
    credentials: {name: archive-writer}
encryption: {recipient: %s, key: {name: archive-key}}`, s.Namespace, key.Recipient()))
	file := filepath.Join(t.TempDir(), "main.yaml")
	must(t, os.WriteFile(file, []byte(manifest), 0o600))

	shop := inNamespace(t, string(s.Namespace)+"-shop", leavings.add)
	shop.apply(secrets)
	shop.apply(manifest)
	shop.ready("main")
	before := shop.access("main", naming.ReadWriteService("main"))
	shop.backedUp("main")
	shop.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1), (2)")
	shop.condition("main", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	shop.patch("main", `{"backup":{"maxLag":"1h"}}`)
	writer, err := outside.StartWriter(s.ctx, before)
	must(t, err)
	shop.run("delete", "namespace", string(shop.Namespace), "--timeout=4m")
	writer.Stop()
	shop.makeNamespace()
	shop.apply(secrets)
	if out := shop.toban("undelete", "--store", file); !strings.Contains(out, "main") ||
		!strings.Contains(out, "SampleDB") {
		t.Errorf("the store has\n%s", out)
	}
	if _, err := s.Toban(s.ctx, "undelete", "--store", file); err == nil ||
		!strings.Contains(err.Error(), "the Secret that encryption.key names") {
		t.Errorf("in a namespace without the key: %v", err)
	}
	if out := shop.toban("undelete", "--store", file, "--from", "another"); !strings.Contains(out, "No deleted") {
		t.Errorf("of another namespace it has\n%s", out)
	}
	t.Log(shop.toban("undelete", "main", "--store", file))
	shop.ready("main")
	shop.kept("main", "1,2")
	writer.Use(shop.access("main", naming.ReadWriteService("main")))
	if lost, err := writer.Lost(s.ctx); err != nil || len(lost) > 0 || writer.Acknowledged() == 0 {
		t.Errorf("of %d committed rows, %d are lost: %v, %v", writer.Acknowledged(), len(lost), lost, err)
	}
	t.Logf("%d rows were committed, the last while the namespace was being deleted", writer.Acknowledged())
	shop.sql("main", "INSERT INTO kept VALUES (3)")
	if after := shop.access("main", naming.ReadWriteService("main")); after.Password != before.Password {
		t.Error("the application's password is another one")
	}
	if spec := shop.run("get", "sampledb", "main", "-o", "jsonpath={.spec}"); strings.Contains(spec, "restoreFrom") ||
		!strings.Contains(spec, key.Recipient().String()) {
		t.Errorf("the spec is not that of before: %s", spec)
	}
	if pods := shop.run("get", "pods", "-o", "name"); strings.Contains(pods, "toban-find") {
		t.Errorf("the Pods of the command are still there: %s", pods)
	}
	// What is there is not lost, and another store's archive is not looked at.
	if out := shop.toban("undelete", "--store", file); !strings.Contains(out, "another SampleDB has its name") {
		t.Errorf("with main back, the store has\n%s", out)
	}
}
