//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
	"toban.dev/test/stores/servers"
)

// underLoad is a SampleDB with a writer, and a session that stays. The function says that neither a server nor the
// session has ended since, and no acknowledged row is lost, in the database or in a copy of it from the archive.
func (s *story) underLoad(name, restored string) (ends func()) {
	s.Helper()
	check := s.writing(name)
	session, err := s.access(name, naming.ReadWriteService(name)).Patient().Connect(s.ctx)
	must(s.T, err)
	s.Cleanup(func() { _ = session.Close(context.Background()) })
	backend, started := backendOf(s, session), s.startedAt(name)
	return func() {
		s.Helper()
		if now := backendOf(s, session); now != backend {
			s.Errorf("the session had the process %d and has %d", backend, now)
		}
		if now := s.startedAt(name); now != started {
			s.Errorf("the servers started at %s, and before at %s", now, started)
		}
		check(outside.Undisturbed) // no row is lost, and the writer has stopped
		rows := s.count(name)
		s.archived(name)
		s.condition(name, v1.ConditionArchiving, "True", v1.ReasonArchiving)
		s.apply(sampleDB(restored, 1, "restoreFrom: {sampleDB: "+name+"}", "backup: {none: true}"))
		s.ready(restored)
		if got := s.count(restored); got != rows {
			s.Errorf("%d rows are in the database, and %d in what was restored from its archive", rows, got)
		}
	}
}

// The credentials of a store are changed in their Secret, under load. Wrong ones are said; the right ones are used
// without a restart or a lost connection, and the former ones are of no use any more.
func TestLongTheStoreGetsOtherCredentials(t *testing.T) {
	s := begin(t)
	s.run("create", "secret", "generic", "s3-users", "--from-literal=users.json="+servers.UsersOfS3(t))
	s.apply(s3Server)
	s.run("wait", "pod/s3", "--for=condition=Ready", "--timeout=2m")
	servers.LetIn(t, s.address("s3"), map[string]string{"writer": "instances", "renewed": "instances"})
	s.apply(withBackup("shop", 3, `schedule: none
store:
  s3:
    bucket: archive
    endpoint: http://s3:7070
    pathStyle: true
    credentials: {name: archive-writer}`))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.backedUp("shop")
	ends := s.underLoad("shop", "again")

	s.apply(credentials("renewed", "a wrong secret"))
	message := s.condition("shop", v1.ConditionArchiving, "False", v1.ReasonArchiveFailing)
	t.Logf("with wrong credentials: %s", message)
	s.rowsAtLeast("shop", s.count("shop")+50)

	s.apply(credentials("renewed", "secret of renewed"))
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	servers.LetIn(t, s.address("s3"), map[string]string{"renewed": "instances"})
	s.archived("shop")
	ends()
}

// credentials is the Secret of a store.
func credentials(id, secret string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: archive-writer}\n" +
		"stringData: {accessKeyID: " + id + ", secretAccessKey: " + secret + "}\n"
}

// An archive gets another key under load. What still needs the former one is said, and so is that it is gone too early;
// what is restored has been encrypted for both. TestARestoreOverAChangeOfTheKey of test/local/backup restores over the
// change of a key, TestTheLastBackupIsReadWithTheKey of test/local looks into the archive, and keys_test.go of test/api
// has what the operator says.
func TestLongTheArchiveGetsAnotherKey(t *testing.T) {
	s := begin(t)
	former, err := age.GenerateX25519Identity()
	must(t, err)
	now, err := age.GenerateX25519Identity()
	must(t, err)
	s.apply(archiveKey(former))
	s.apply(withBackup("shop", 3, "schedule: none\nencryption: {recipient: "+former.Recipient().String()+
		", key: {name: archive-key}}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.backedUp("shop")
	s.condition("shop", v1.ConditionKeysHeld, "True", v1.ReasonKeysHeld)
	ends := s.underLoad("shop", "again")

	s.apply(archiveKey(now, former))
	s.patch("shop", `{"backup":{"encryption":{"recipient":"`+now.Recipient().String()+`"}}}`)
	s.keysSay("True", "Keep the former key "+former.Recipient().String())

	s.apply(archiveKey(now))
	s.apply("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: looks}\nspec: {sampleDB: shop}\n")
	s.completed("looks")
	s.keysSay("False", former.Recipient().String())
	s.apply(archiveKey(now, former))
	s.apply("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: looks-again}\nspec: {sampleDB: shop}\n")
	s.completed("looks-again")
	s.keysSay("True", "Keep the former key "+former.Recipient().String())
	ends()

	// The first backup needs the former key, and the WAL since it both.
	first := s.run("get", "databasebackup", "--sort-by=.metadata.creationTimestamp",
		"-o", "jsonpath={.items[0].metadata.name}")
	s.run("annotate", "databasebackup", first, "toban.dev/verify=please")
	s.until(func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "get", "databasebackup", first,
			"-o", "jsonpath={range .status.conditions[?(@.type=='Verified')]}{.status}: {.message}{end}")
		if err == nil && !strings.HasPrefix(said, "True: ") {
			err = fmt.Errorf("verified: %q", said)
		}
		return err
	})
}

// archiveKey is the Secret with keys of an archive.
func archiveKey(keys ...*age.X25519Identity) string {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: archive-key}\nstringData:\n  age.key: |\n"
	for _, key := range keys {
		text += "    " + key.String() + "\n"
	}
	return text
}

// keysSay waits until the condition KeysHeld has a status, and words in its message.
func (s *story) keysSay(status, words string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "get", "sampledb", "shop",
			"-o", "jsonpath={range .status.conditions[?(@.type=='KeysHeld')]}{.status}: {.message}{end}")
		if err == nil && (!strings.HasPrefix(said, status+": ") || !strings.Contains(said, words)) {
			err = fmt.Errorf("KeysHeld is %q", said)
		}
		return err
	})
}
