// Package find looks for backups in a store of which nothing else is known, in the Pod of an undelete.
package find

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// Options are what is told to the process that looks for backups.
type Options struct {
	// Settings are protocol.FindSettings in JSON, Key is the folder with the key of the archives.
	Settings, Key string
	// Out takes the lines.
	Out io.Writer
}

// Run looks for backups in a store, in a Pod that a person's command has made, and writes a line for each.
func Run(ctx context.Context, o Options) error {
	lines := json.NewEncoder(o.Out)
	err := o.find(ctx, func(f book.Found) error {
		if err := lines.Encode(protocol.FoundLine{Backup: foundBackup(f)}); err != nil {
			return fmt.Errorf("write what was found: %w", err)
		}
		return nil
	})
	last := protocol.FoundLine{End: err == nil, Error: pod.Words(err)}
	return errors.Join(err, lines.Encode(last))
}

func (o Options) find(ctx context.Context, found func(book.Found) error) error {
	var settings protocol.FindSettings
	if err := json.Unmarshal([]byte(o.Settings), &settings); err != nil {
		return fmt.Errorf("understand the settings: %w", err)
	}
	decoder, err := pod.Decoder(settings.Encrypted, o.Key)
	if err != nil {
		return err
	}
	store, err := bucket.Open(ctx, settings.Bucket)
	if err != nil {
		return err
	}
	return book.Find(ctx, store, settings.Folder, decoder, found)
}

func foundBackup(f book.Found) *protocol.FoundBackup {
	b := f.Backup
	return &protocol.FoundBackup{
		Namespace: f.Owner.Namespace, Name: f.Owner.Name, UID: f.Owner.UID, Path: f.Path, ByFolder: f.ByFolder,
		NotSaid: f.NotSaid,
		ID:      b.ID, Trigger: b.Trigger, Stopped: b.Stopped, StopLSN: b.StopLSN.String(),
		ServerVersion: b.ServerVersion, Bytes: b.RawBytes, SampleDB: f.SampleDB, Problem: f.Problem,
	}
}
