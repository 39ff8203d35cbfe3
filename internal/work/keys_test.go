package work

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"filippo.io/age"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// A result says of each key what needs it and whether the Secret has it, and nothing of the keys themselves.
func TestWhichKeysThereAre(t *testing.T) {
	var private, public []string
	for range 3 {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		private, public = append(private, key.String()), append(public, key.Recipient().String())
	}
	encrypted := func(recipient string) format.Backup {
		return format.Backup{Manifest: format.Object{Name: "backup_manifest.zst.age"}, Recipient: recipient}
	}
	catalogue := book.Catalogue{Backups: []format.Backup{encrypted(public[0]), encrypted(public[0])}}
	for name, c := range map[string]struct {
		secret string // "" for none
		now    string
		want   []protocol.ArchiveKey
	}{
		"the former key was taken out too early": {private[1] + "\n", public[1], []protocol.ArchiveKey{
			{Recipient: public[1], Held: true}, {Recipient: public[0], Backups: 2}}},
		"the new one was not put in": {private[0], public[1], []protocol.ArchiveKey{
			{Recipient: public[1]}, {Recipient: public[0], Backups: 2, Held: true}}},
		"both, and one that nothing needs": {strings.Join(private, "\n# a comment\n"), public[1], []protocol.ArchiveKey{
			{Recipient: public[1], Held: true}, {Recipient: public[0], Backups: 2, Held: true},
			{Recipient: public[2], Held: true}}},
		"there is no Secret":            {"", public[0], []protocol.ArchiveKey{{Recipient: public[0], Backups: 2}}},
		"it has no key":                 {"none", public[0], []protocol.ArchiveKey{{Recipient: public[0], Backups: 2}}},
		"nothing is encrypted any more": {private[0], "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			folder, run := t.TempDir(), t.TempDir()
			if c.secret != "" {
				if err := os.WriteFile(filepath.Join(folder, naming.KeyAge), []byte(c.secret), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := LookAtKeys(KeysOptions{Key: folder, Run: run}); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadFile(filepath.Join(run, fileKeys))
			if err != nil || strings.Contains(string(left), private[0]) {
				t.Errorf("it leaves %s, %v", left, err)
			}
			worker := &taking{Pod: pod.New(pod.Options{Run: run})}
			worker.settings.Archive.Recipient = c.now
			if got := worker.keys(catalogue); !reflect.DeepEqual(got, c.want) {
				t.Errorf("the keys are %+v, want %+v", got, c.want)
			}
		})
	}
	nobody := &taking{Pod: pod.New(pod.Options{Run: t.TempDir()})}
	nobody.settings.Archive.Recipient = public[0]
	if got := nobody.keys(catalogue); got != nil {
		t.Errorf("where nobody has looked: %+v", got)
	}
}
