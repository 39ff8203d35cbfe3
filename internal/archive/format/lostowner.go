package format

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/archive/bucket"
)

// UnclaimedError says that archive.json is lost, and that nothing proves whose the archive is.
type UnclaimedError struct{ Owner Owner }

// Error says what to do.
func (e *UnclaimedError) Error() string {
	text, err := json.Marshal(e.Owner)
	if err != nil {
		text = []byte(err.Error())
	}
	return fmt.Sprintf("%s is missing or empty, though the archive has WAL or backups, and no backup there proves "+
		"whose they are. Nothing is written over them. Put %s back from a copy; if they are this database's, write it "+
		"anew with %s; else move them elsewhere", FileArchive, FileArchive, text)
}

// traces is what an archive without archive.json says of whose it is.
type traces struct {
	// wal says that there is some, systems are the system identifiers that backups name, unknown that one names none.
	wal, unknown bool
	systems      []string
}

// provenFor is nil where an owner may go on in an archive that has lost its archive.json. known says that this process
// has claimed it before: then all that is there is this database's, unless a backup says that it is another's. The
// folder's name has the SampleDB's UID, so a copy of the database that has its system identifier has another folder.
func (t traces) provenFor(owner Owner, known bool) error {
	for _, system := range t.systems {
		if system != owner.SystemIdentifier {
			return &TakenError{Owner{SystemIdentifier: system}}
		}
	}
	if known || len(t.systems) > 0 || !t.wal && !t.unknown {
		return nil
	}
	return &UnclaimedError{owner}
}

// readTraces reads them.
func readTraces(ctx context.Context, b bucket.Bucket) (t traces, err error) {
	for _, err := range b.List(ctx, FolderWAL) {
		if err != nil {
			return t, fmt.Errorf("list the WAL: %w", err)
		}
		t.wal = true
		break
	}
	for after := FolderBase; ; {
		folder := ""
		for o, err := range b.ListAfter(ctx, FolderBase, after) {
			if err != nil {
				return t, fmt.Errorf("list the backups: %w", err)
			}
			id, _, _ := strings.Cut(strings.TrimPrefix(o.Name, FolderBase), "/")
			folder = FolderBase + id
			break
		}
		if folder == "" {
			return t, nil
		}
		if err := t.add(ctx, b, folder+"/"+FileBackup); err != nil {
			return t, err
		}
		after = folder + "0" // after all that is in the folder: 0 follows the slash
	}
}

// add adds what a backup says. One that did not end says nothing, and has nothing that anybody needs.
func (t *traces) add(ctx context.Context, b bucket.Bucket, name string) error {
	text, err := ReadWhole(ctx, b, name)
	if errors.Is(err, bucket.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var backup struct {
		SystemIdentifier string `json:"systemIdentifier"`
	}
	if json.Unmarshal(text, &backup) != nil || backup.SystemIdentifier == "" {
		t.unknown = true
	} else if !slices.Contains(t.systems, backup.SystemIdentifier) {
		t.systems = append(t.systems, backup.SystemIdentifier)
	}
	return nil
}

// errEmpty says that archive.json has no content: a store, or who copied it, has lost that.
var errEmpty = errors.New(FileArchive + " is empty")

// nonEmpty is errEmpty for an archive.json without content.
func nonEmpty(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errEmpty
	}
	return nil
}
