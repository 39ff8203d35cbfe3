package api

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// inBucket has the archive be in a bucket.
func inBucket(name string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Spec.Backup = &v1.BackupSpec{Store: v1.StoreSpec{S3: &v1.S3Store{
			Bucket: name, Credentials: &v1.SecretReference{Name: "writer"},
		}}}
	}
}

// An archive in another store begins with a backup, also where the schedule asks for none; and as long as the agent
// speaks of the former archive, nothing is said of the new one, and no backup begins.
func TestAnotherStoreBeginsWithABackup(t *testing.T) {
	k, db := newWorld(t).ready("x", inBucket("former"))
	k.now = k.now.Add(time.Hour)
	state := works
	state.Place = "s3://former/" + db.Status.Backup.Archive
	db = k.archive(db, &state)
	k.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
	if b := db.Status.Backup; b.Store != "s3://former" || b.StoreSince != nil || b.LastBackup == "" {
		t.Fatalf("at first the status is %+v", b)
	}
	db = k.edit(db, func(db *v1.SampleDB) {
		inBucket("present")(db)
		db.Spec.Backup.Schedule = "none"
	})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonArchiveStarting)
	b := db.Status.Backup
	if b.Store != "s3://present" || b.StoreSince == nil || b.LastBackup != "" || b.ArchivedLSN != "" ||
		b.Earliest != nil || len(b.Windows) > 0 {
		t.Errorf("after the edit the status is %+v", b)
	}
	if got := k.backups(); len(got) != 1 {
		t.Fatalf("before any WAL is there, there are the backups %q", got)
	}
	told := protocol.ArchiveStatus{Place: strings.Replace(state.Place, "former", "present", 1), LSN: "0/5000000"}
	db = k.archive(db, &told)
	k.now = k.now.Add(time.Second)
	db = k.reconcile(db)
	if got := k.backups(); len(got) != 2 {
		t.Errorf("there are the backups %q, and the status is %+v", got, db.Status.Backup)
	}
	db = k.reconcile(db)
	if got := k.backups(); len(got) != 2 || db.Status.Backup.ArchivedLSN != told.LSN {
		t.Errorf("later there are the backups %q, and the status is %+v", got, db.Status.Backup)
	}
}
