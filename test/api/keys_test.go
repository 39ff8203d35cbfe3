package api

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// encryptedFor has the archive encrypted for a key.
func encryptedFor(recipient string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Spec.Backup.Encryption = &v1.EncryptionSpec{
			Recipient: recipient, Key: v1.SecretReference{Name: "archive-key"},
		}
	}
}

// Another key is followed by one full backup, and what that has seen of the keys is said.
func TestAnotherKeyOfTheArchive(t *testing.T) {
	former, now := "age1"+strings.Repeat("q", 58), "age1"+strings.Repeat("p", 58)
	k, db := newWorld(t).ready("x")
	db = k.edit(db, encryptedFor(former))
	k.completeFull(2, former, protocol.ArchiveKey{Recipient: former, Backups: 1, Held: true})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionKeysHeld, metav1.ConditionTrue, v1.ReasonKeysHeld)

	db = k.edit(db, encryptedFor(now))
	k.expect(db, v1.ConditionKeysHeld, metav1.ConditionFalse, v1.ReasonKeyNotTried)
	k.completeFull(3, now, protocol.ArchiveKey{Recipient: now, Backups: 1},
		protocol.ArchiveKey{Recipient: former, Backups: 1, Held: true})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionKeysHeld, metav1.ConditionFalse, v1.ReasonKeyMissing)
	if keys := db.Status.Backup.Keys; len(keys) != 2 || keys[1].Backups != 1 || !keys[1].Held {
		t.Errorf("the keys are %+v", keys)
	}
	k.reconcile(db)
	if all := k.backups(); len(all) != 3 {
		t.Errorf("there are the backups %v", all)
	}
}

// completeFull expects so many backups, the last of them a full one, and lets it be complete.
func (k *taker) completeFull(count int, recipient string, keys ...protocol.ArchiveKey) {
	k.Helper()
	all := k.backups()
	if len(all) != count {
		k.Fatalf("there are the backups %v, expected %d", all, count)
	}
	b := &v1.DatabaseBackup{}
	k.read(all[count-1], b)
	if !b.Spec.Full {
		k.Errorf("%s is not a full one", b.Name)
	}
	result := taken
	result.Recipient, result.Keys = recipient, keys
	b = k.completeWith(b, result)
	if e := b.Status.Archive.Encryption; e == nil || e.Recipient != recipient {
		k.Errorf("%s is encrypted by %+v", b.Name, e)
	}
}
