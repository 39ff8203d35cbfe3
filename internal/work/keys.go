package work

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

const (
	// fileKeys is the file in the Pod's own folder that says which keys the Secret has.
	fileKeys = "keys.json"
	// mostKeys bounds how many keys a result names.
	mostKeys = 8
)

// KeysOptions are what the container is told that sees which keys a Secret has.
type KeysOptions struct {
	// Key is the folder with the key of the archive, Run the Pod's own.
	Key, Run string
}

// heldKeys are the public halves of the keys in the Secret.
type heldKeys struct {
	Recipients []string `json:"recipients"`
	// Problem is why there is none, "" where there is one.
	Problem string `json:"problem,omitempty"`
}

// LookAtKeys leaves the public halves of the keys in a Secret for the container that takes the backup, which can't read
// the keys themselves. A Secret that is not there keeps no backup from being taken.
func LookAtKeys(o KeysOptions) error {
	var held heldKeys
	text, err := os.ReadFile(filepath.Join(o.Key, naming.KeyAge))
	if err == nil {
		held.Recipients, err = format.Recipients(string(text))
	}
	if err != nil {
		held.Problem = fmt.Sprintf("the Secret that encryption.key names has no key of age as %s: %v",
			naming.KeyAge, err)
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Warn(held.Problem)
	}
	words, err := json.Marshal(held)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Run, fileKeys), words, 0o600); err != nil {
		return fmt.Errorf("leave which keys there are: %w", err)
	}
	return nil
}

// keys are those that archives need, that the Secret has, and that everything is encrypted for from now on: nil
// without encryption, and where nobody has looked into the Secret.
func (t *taking) keys(archives ...book.Catalogue) []protocol.ArchiveKey {
	text, err := os.ReadFile(filepath.Join(t.Run, fileKeys))
	if t.settings.Archive.Recipient == "" || err != nil {
		return nil
	}
	var held heldKeys
	if err := json.Unmarshal(text, &held); err != nil {
		t.Log.Warn("it is not known which keys the Secret has", "error", err.Error())
		return nil
	}
	out := []protocol.ArchiveKey{{Recipient: t.settings.Archive.Recipient}}
	at := func(recipient string) *protocol.ArchiveKey {
		i := slices.IndexFunc(out, func(k protocol.ArchiveKey) bool { return k.Recipient == recipient })
		if i < 0 {
			i, out = len(out), append(out, protocol.ArchiveKey{Recipient: recipient})
		}
		return &out[i]
	}
	for _, c := range archives { // those of former major versions need theirs too
		for _, use := range c.KeyUses() {
			key := at(use.Recipient)
			key.Backups, key.WAL = key.Backups+use.Backups, key.WAL+use.WAL
		}
	}
	for _, recipient := range held.Recipients {
		at(recipient).Held = true
	}
	return out[:min(len(out), mostKeys)]
}
