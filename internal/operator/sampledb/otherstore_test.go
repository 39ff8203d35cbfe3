package sampledb

import (
	"errors"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// A restore in place reads the store that is used now. A backup of another one is not there, whatever its folder.
func TestARestoreInPlaceReadsTheStoreInUse(t *testing.T) {
	s, model := scopeOn(worldtest.MovedArchive("none")), newStory(t, newShared(t), 1)
	s.Seen.Backups = append(s.Seen.Backups, worldtest.BackupIn(worldtest.Outside, "x-here", "2026-11-20 12:00:10"))
	for i := range s.Seen.Backups {
		model.put(kindBackup, &s.Seen.Backups[i])
	}
	s.Effects = model.reconciler.effects()
	source, err := s.OwnSource(t.Context(), v1.RestoreSpec{Backup: "x-here"})
	if err != nil || source.Backup != "x-here" || source.Archive.Store.S3 == nil {
		t.Errorf("of one that is there it reads %+v (%v)", source, err)
	}
	_, err = s.OwnSource(t.Context(), v1.RestoreSpec{Backup: worldtest.BackupOnVolume})
	var is *world.Problem
	if !errors.As(err, &is) || is.Reason != v1.ReasonRestoreSourceNotFound ||
		!strings.Contains(is.Message, "is in another store") {
		t.Errorf("of one on the volume: %v", err)
	}
}
