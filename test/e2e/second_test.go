//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/stores/servers"
)

// The first store of an archive is lost with all that it has, and then the database too. What was committed before the
// last copy comes back from the second store, which no instance had access to. TestAnArchiveIsCopiedBetweenStores of
// test/stores copies between stores of each kind, and TestAnArchiveIsCopiedIntoTheSecondStore of test/api has what the
// operator says.
func TestLongTheFirstStoreIsLost(t *testing.T) {
	s := begin(t)
	s.run("create", "secret", "generic", "s3-users", "--from-literal=users.json="+servers.UsersOfS3(t))
	elsewhere := strings.NewReplacer(
		"name: s3, labels: {app: s3}", "name: far, labels: {app: far}",
		"metadata: {name: s3}", "metadata: {name: far}",
		"selector: {app: s3}", "selector: {app: far}",
	).Replace(s3Server)
	s.apply(s3Server)
	s.apply(elsewhere)
	s.run("wait", "pod/s3", "pod/far", "--for=condition=Ready", "--timeout=2m")
	for _, server := range []string{"s3", "far"} {
		servers.LetIn(t, s.address(server), map[string]string{"writer": "instances"})
	}
	key, err := age.GenerateX25519Identity()
	must(t, err)
	s.apply(archiveKey(key))
	s.run("create", "secret", "generic", "archive-copier", "--from-literal=accessKeyID=writer",
		"--from-literal=secretAccessKey=secret of writer")
	encryption := fmt.Sprintf("encryption: {recipient: %s, key: {name: archive-key}}", key.Recipient())
	s.apply(withBackup("main", 1, storeIn("store", "s3", string(s.Namespace), "archive-writer")+
		storeIn("secondStore", "far", string(s.Namespace), "archive-copier")+encryption))
	s.ready("main")
	s.backedUp("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1), (2)")
	s.archived("main")
	s.copied("main")
	s.condition("main", v1.ConditionCopied, "True", v1.ReasonCopied)
	if pod := s.run("get", "pod", "main-0", "-o", "yaml"); strings.Contains(pod, "archive-copier") {
		t.Error("the instance has the credentials of the second store")
	}
	db := s.ready("main")
	path := db.Status.Backup.Archive

	s.run("delete", "pod/s3", "service/s3")
	s.condition("main", v1.ConditionArchiving, "False", v1.ReasonArchiveFailing)
	s.run("delete", "jobs", "-l", "toban.dev/sampledb=main,toban.dev/component="+naming.ComponentSecond)
	t.Log(s.condition("main", v1.ConditionCopied, "False", v1.ReasonCopyFailing))
	s.patch("main", `{"deletionPolicy":"Delete"}`)
	s.run("delete", "sampledb", "main", "--timeout=3m")

	restore := fmt.Sprintf("restoreFrom:\n  archive:\n    path: %s\n%s    %s\n", path,
		indent(indent(storeIn("store", "far", string(s.Namespace), "archive-copier"))), encryption)
	s.apply(bare("again", 1, restore))
	s.ready("again")
	s.kept("again", "1,2")
}

// storeIn is a store of a spec: the bucket "archive" of a server in a namespace.
func storeIn(field, server, namespace, secret string) string {
	return fmt.Sprintf(`%s:
  s3:
    bucket: archive
    endpoint: http://%s.%s:7070
    pathStyle: true
    credentials: {name: %s}
`, field, server, namespace, secret)
}

// copied waits until the second store has all that the archive has now. A run that began before that is followed by
// another at once, and not ten minutes later.
func (s *story) copied(name string) {
	s.Helper()
	now, seen := time.Now(), ""
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		c := db.Status.Backup.Copy
		switch {
		case c == nil || c.CheckedAt == nil && c.Problem == "":
			return fmt.Errorf("it was not copied yet: %+v", c)
		case c.Until != nil && c.Until.After(now):
			return nil
		}
		if told := fmt.Sprint(c.CheckedAt, c.Problem); told != seen {
			seen = told
			s.run("delete", "jobs", "-l", "toban.dev/sampledb="+name+",toban.dev/component="+naming.ComponentSecond)
		}
		return fmt.Errorf("the copy has what the archive had before %s: %+v", now, c)
	})
}
