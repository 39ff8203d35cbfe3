package restore

import (
	"errors"
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/postgres"
)

func TestARestoreLooksWhetherThereIsRoom(t *testing.T) {
	one := format.Backup{ID: "a", Type: format.TypeFull, RawBytes: 1 << 20}
	folder := t.TempDir()
	r := &restoring{RestoreOptions: RestoreOptions{Folder: folder},
		catalogue: book.Catalogue{Backups: []format.Backup{one}},
		scratch:   newScratch(postgres.Programs{}, folder, "", nil, nil)}
	r.restored.Choice.Backup = one
	if err := r.room(t.Context()); err != nil {
		t.Errorf("for a megabyte: %v", err)
	}
	r.Reserve = 1 << 60
	if err := r.room(t.Context()); !errors.Is(err, ErrNoRoom) {
		t.Errorf("with an exbibyte to be left free: %v", err)
	}
	r.Reserve, r.catalogue.Backups[0].RawBytes = 0, 1<<60
	if err := r.room(t.Context()); !errors.Is(err, ErrNoRoom) {
		t.Errorf("for an exbibyte: %v", err)
	}
}
