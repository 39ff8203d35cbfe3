package work

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/protocol"
)

// Only the word about its own session ends the wait of a session.
func TestASessionWaitsForItsOwnCut(t *testing.T) {
	run := &taking{}
	tell := func(body string) int {
		answer := httptest.NewRecorder()
		run.onCut(answer, httptest.NewRequest(http.MethodPost, protocol.PathCut, strings.NewReader(body)))
		return answer.Code
	}
	isCut := func(cut <-chan struct{}) bool {
		select {
		case <-cut:
			return true
		default:
			return false
		}
	}
	if code := tell(`{"session":""}`); code != http.StatusConflict {
		t.Errorf("while no session waits it answers %d", code)
	}
	first := run.cut.begin("one")
	second := run.cut.begin("two")
	for body, want := range map[string]int{
		`{"session":"one"}`: http.StatusConflict, `{"session":""}`: http.StatusConflict, `cut`: http.StatusBadRequest,
	} {
		if code := tell(body); code != want || isCut(second) {
			t.Errorf("to %s it answers %d, expected %d; cut: %v", body, code, want, isCut(second))
		}
	}
	for range 2 { // the answer to the first may be lost
		if code := tell(`{"session":"two"}`); code != http.StatusOK || !isCut(second) || isCut(first) {
			t.Errorf("it answers %d; cut: %v", code, isCut(second))
		}
	}
}

// What a Pod says of a snapshot is what a restore and retention understand.
func TestASnapshotIsTheSameAfterItWasTold(t *testing.T) {
	at := time.Date(2026, 11, 20, 3, 15, 0, 1, time.UTC)
	s := format.Snapshot{BackupLabel: "START TIMELINE: 3\n", Backup: format.Backup{
		ID: "20261120T031500Z-3f2a", Type: format.TypeSnapshot, Term: 42, Started: at.Add(-time.Minute), Stopped: at,
		StartLSN: 0x1_00000028, StopLSN: 0x1_00000100, StartTimeline: 3, StopTimeline: 3,
		ServerVersion: "17.6", SystemIdentifier: "7",
	}}
	run := &taking{}
	run.reportSnapshot(s)
	got, err := snapshotBackup(*run.result.Snapshot)
	// A moment within the second in which it ended may be from before its end.
	s.Stopped = time.Date(2026, 11, 20, 3, 15, 1, 0, time.UTC)
	s.Started = s.Stopped
	if err != nil || got.BackupLabel != s.BackupLabel || got.Stopped != s.Stopped || got.StartLSN != s.StartLSN ||
		got.StopLSN != s.StopLSN || got.Term != 42 || got.StopTimeline != 3 || got.ID != s.ID ||
		got.SystemIdentifier != "7" || got.ServerVersion != "17.6" {
		t.Errorf("it is %+v, %v", got, err)
	}
	if run.result.ID != "" {
		t.Error("it counts as a base backup in the archive")
	}
	bad := *run.result.Snapshot
	bad.StopLSN = "?"
	if _, err := snapshotBackups([]protocol.Snapshot{bad}); err == nil {
		t.Error("retention goes on without knowing what a snapshot needs")
	}
}
