package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// lost is a SampleDB that is gone and has a backup.
type lost struct {
	name string
	// backup is the last complete one of it.
	backup *v1.DatabaseBackup
	// all are its complete ones, the newest first.
	all []*v1.DatabaseBackup
	// note says what speaks against bringing it back, "" for nothing.
	note string
}

// otherWay is how to restore it into a SampleDB where undelete can't make that.
func (l lost) otherWay(into string) string {
	if l.backup.UID == "" { // no object, but what a store has
		return "create a SampleDB " + into + " with spec.restoreFrom.archive.path: " + l.backup.Status.Archive.Path
	}
	return "kubectl toban restore " + l.name + " --into " + into + " --backup " + l.backup.Name + " --size SIZE"
}

// kind is that of the object which comes back.
func (l lost) kind() string {
	var m struct {
		Kind string `json:"kind"`
	}
	if l.backup.Status.Manifest == nil || json.Unmarshal(l.backup.Status.Manifest.Raw, &m) != nil {
		return "SampleDB"
	}
	return m.Kind
}

// final says that the backup was taken when the SampleDB was deleted, and nobody could write any more.
func (l lost) final() bool {
	return strings.HasPrefix(l.backup.Name, naming.FinalBackup(l.name, ""))
}

// findLost finds the SampleDBs of which there are backups, and which are not there, the one that was there last first.
// Two of the same name are told apart by their archives.
func findLost(backups []v1.DatabaseBackup, live []v1.SampleDB) []lost {
	there, names := map[string]bool{}, map[string]bool{}
	for i := range live {
		db := &live[i]
		there[naming.ArchivePath(db.Namespace, db.Name, string(db.UID))], names[db.Name] = true, true
	}
	byArchive := map[string]*lost{}
	for i := range backups {
		b := &backups[i]
		if ofUse(b, b.Spec.SampleDB) != nil || b.Status.CompletedAt == nil {
			continue
		}
		first, _ := naming.FirstArchivePath(b.Status.Archive.Path) // each major version has its own
		if there[first] {
			continue
		}
		l := byArchive[first]
		if l == nil {
			l = &lost{name: b.Spec.SampleDB}
			byArchive[first] = l
		}
		l.all = append(l.all, b)
	}
	var out []lost
	for _, l := range byArchive {
		slices.SortFunc(l.all, newestFirst)
		l.backup = l.all[0]
		switch {
		case names[l.name]:
			l.note = "another SampleDB has its name: " + l.otherWay("OTHER")
		case l.backup.Status.Manifest == nil:
			l.note = "its spec is not known: " + l.otherWay(l.name)
		}
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b lost) int { return newestFirst(a.backup, b.backup) })
	return out
}

func newestFirst(a, b *v1.DatabaseBackup) int {
	if !a.Status.CompletedAt.Equal(b.Status.CompletedAt) {
		return b.Status.CompletedAt.Compare(a.Status.CompletedAt.Time)
	}
	return strings.Compare(b.Name, a.Name)
}

// choose takes the one of a name that was there last, and of its backups the one that is named, or the last.
func choose(all []lost, name, backup string) (lost, error) {
	for _, l := range all {
		if l.name != name {
			continue
		}
		if backup != "" {
			i := slices.IndexFunc(l.all, func(b *v1.DatabaseBackup) bool { return b.Name == backup })
			if i < 0 {
				continue
			}
			l.backup = l.all[i]
		}
		if l.backup.Status.Manifest == nil {
			return l, fmt.Errorf("the spec of %s is not known, because its backup is of an older Toban: %s", name,
				l.otherWay(name))
		}
		return l, nil
	}
	if backup != "" {
		return lost{}, fmt.Errorf("there is no complete DatabaseBackup %s of a deleted SampleDB %s", backup, name)
	}
	return lost{}, fmt.Errorf("there is no backup of a deleted SampleDB %s", name)
}

// readBackups reads DatabaseBackups from a file, one or a list. Those of other namespaces are left out.
func readBackups(path, namespace string) ([]v1.DatabaseBackup, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the DatabaseBackups: %w", err)
	}
	defer file.Close()
	var out []v1.DatabaseBackup
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var document struct {
			Kind  string              `json:"kind"`
			Items []v1.DatabaseBackup `json:"items"`
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if err := json.Unmarshal(raw, &document); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if document.Kind == "DatabaseBackup" {
			var one v1.DatabaseBackup
			if err := json.Unmarshal(raw, &one); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			document.Items = []v1.DatabaseBackup{one}
		}
		out = append(out, document.Items...)
	}
	return slices.DeleteFunc(out, func(b v1.DatabaseBackup) bool { return b.Namespace != namespace }), nil
}
