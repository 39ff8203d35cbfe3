package desired

import (
	"reflect"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// What one verification leaves in the status is what the next gets to know.
func TestWhereTheNextVerificationReadsOn(t *testing.T) {
	at := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	last := protocol.ScrubState{
		Position: 1<<63 + 4711, At: at.Add(2 * time.Hour), Round: at.Add(time.Hour), Whole: at, Objects: 3, Bytes: 4,
		Total: 5, More: 2, Broken: []protocol.BrokenObject{{Name: "n", Problem: "p", Newest: true}},
	}
	status := ScrubStatus(last)
	if status.Percent != 50 {
		t.Errorf("half of the round is %d %%", status.Percent)
	}
	db := &v1.SampleDB{}
	db.Status.Backup = &v1.BackupStatus{Scrub: status}
	if got := scrub(db); !reflect.DeepEqual(got.Last, last) || got.Days != 30 || got.Budget != 0 {
		t.Errorf("it gets %+v", got)
	}
	db.Spec.Backup = &v1.BackupSpec{Verification: v1.VerificationSpec{Scrub: &v1.ScrubSpec{Days: 7, Budget: "2Ki"}}}
	if got := scrub(db); got.Days != 7 || got.Budget != 2048 {
		t.Errorf("it gets %+v", got)
	}
	db.Spec.Backup.Verification.Scrub.None = true
	if got := scrub(db); got != nil {
		t.Errorf("it is to do without, and gets %+v", got)
	}
}
