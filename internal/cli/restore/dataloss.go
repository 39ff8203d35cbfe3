package restore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
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
	return fmt.Sprintf("kubectl toban restore %s --into %s --backup %s --size SIZE", l.backup.Spec.SampleDB, into,
		l.backup.Name)
}

// kind is that of the object which comes back.
func (l lost) kind() string {
	if l.backup.Status.Manifest != nil {
		if object, err := desired.ReadManifest(l.backup.Status.Manifest.Raw); err == nil {
			return object.GetObjectKind().GroupVersionKind().Kind
		}
	}
	return "SampleDB"
}

// final says that the backup was taken when the SampleDB was deleted, and nobody could write any more.
func (l lost) final() bool { return isFinal(l.backup) }

func isFinal(b *v1.DatabaseBackup) bool {
	return strings.HasPrefix(b.Name, naming.FinalBackup(b.Spec.SampleDB, ""))
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
		if there[first] || !hasWritten(b) {
			continue
		}
		name := b.Spec.SampleDB
		if side := desired.SideOfBackup(b); side.Of != "" {
			name, first = side.Of, naming.ArchivePath(b.Namespace, side.Of, side.UID)
		}
		l := byArchive[first]
		if l == nil {
			l = &lost{name: name}
			byArchive[first] = l
		}
		l.all = append(l.all, b)
	}
	var out []lost
	for _, l := range byArchive {
		slices.SortFunc(l.all, newestFirst)
		l.backup = last(l.all)
		l.note = l.noteFor(names[l.name])
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b lost) int { return newestFirst(a.backup, b.backup) })
	return out
}

// noteFor is what speaks against bringing it back, "" for nothing.
func (l lost) noteFor(named bool) string {
	return both(l.hindrance(named), l.warnings())
}

// hindrance is why undelete can't bring it back, with what can, "" for nothing.
func (l lost) hindrance(named bool) string {
	switch {
	case named:
		return "another SampleDB has its name: " + l.otherWay("OTHER")
	case l.backup.Status.Manifest == nil:
		return "its spec is not known: " + l.otherWay(l.name)
	}
	if _, err := desired.ReadManifest(l.backup.Status.Manifest.Raw); err != nil {
		return fmt.Sprintf("its manifest is refused: %v: %s", err, l.otherWay(l.name))
	}
	return ""
}

// both are two notes in one, each of which may be "".
func both(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

// warnings are what to know before it is brought back: how it is known whose it is, if not by its archive, and what may
// be missing.
func (l lost) warnings() string {
	return both(l.said(), l.lacks())
}

// said is what a store has said of the backup, "" for nothing.
func (l lost) said() string {
	c := meta.FindStatusCondition(l.backup.Status.Conditions, v1.ConditionComplete)
	if l.backup.UID != "" || c == nil {
		return ""
	}
	return c.Message
}

// lacks says what may be missing in the backup, because the other side of a blue/green upgrade has served, or may have.
func (l lost) lacks() string {
	side := desired.SideOfBackup(l.backup)
	if side.Of != "" {
		return l.lacksOwn()
	}
	if side.Does != naming.SideFollows {
		return ""
	}
	words := naming.Green(l.name) + " has served: what was written there last may be missing"
	if green := ofGreen(l.all); len(green) > 0 {
		words += ", and may be in the archive of its backup: --backup " + green[0].Name
	}
	return words
}

// lacksOwn says what may be missing in a backup of the second side, because the SampleDB's own instances may have
// served again. A store does not say so before it has a backup of theirs that was taken since.
func (l lost) lacksOwn() string {
	if l.backup.UID != "" || isFinal(l.backup) {
		return ""
	}
	for _, b := range l.all {
		if desired.SideOfBackup(b).Of == "" {
			own := lost{name: l.name, backup: b}
			return fmt.Sprintf("%s's own instances may have served again: what was written there may be missing, and "+
				"may be in the archive of their backup, whose end --backup %s brings back. For all of the archive, %s",
				l.name, b.Name, own.otherWay("OTHER"))
		}
	}
	return ""
}

// ofGreen are the backups of the second side, the newest first as all are.
func ofGreen(all []*v1.DatabaseBackup) (out []*v1.DatabaseBackup) {
	for _, b := range all {
		if desired.SideOfBackup(b).Of != "" {
			out = append(out, b)
		}
	}
	return out
}

// hasWritten says that what clients have written may be in a backup, or in the archive after it, which is in no other
// archive. The DatabaseBackups of a second side that has not served go with it, and its folder in a store stays.
func hasWritten(b *v1.DatabaseBackup) bool {
	side := desired.SideOfBackup(b)
	return side.Of == "" || side.Does == naming.SideServes || b.UID != ""
}

// last is the backup that has the last writes, or whose archive has them. All are the newest first. After a last
// backup nothing was written. Without one, a second side whose DatabaseBackups are there has served to the end, and its
// archive goes on. One that has left a last backup, and did not serve to the end, was deleted by hand. In a store the
// folder of one stays that was removed long ago: the side counts of which there is the newest backup that was taken
// while it served.
func last(all []*v1.DatabaseBackup) *v1.DatabaseBackup {
	green := ofGreen(all)
	switch {
	case isFinal(all[0]) || len(green) == 0:
		return all[0]
	case green[0].UID != "" && !slices.ContainsFunc(green, isFinal):
		return green[0]
	}
	for _, b := range all {
		if desired.SideOfBackup(b).Does != naming.SideFollows {
			return b
		}
	}
	return all[0]
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
			l.note = l.warnings()
		}
		if l.backup.Status.Manifest == nil {
			return l, fmt.Errorf("the spec of %s is not known (%s): %s", name,
				cmp.Or(l.said(), "its backup is of an older Toban, which did not store it"), l.otherWay(name))
		}
		return l, nil
	}
	if of := sideOf(all, name); of != "" {
		return lost{}, fmt.Errorf("%s was the second side of %s, and comes back as that: kubectl toban undelete %s",
			name, of, of)
	}
	if backup != "" {
		return lost{}, fmt.Errorf("there is no complete DatabaseBackup %s of a deleted SampleDB %s", backup, name)
	}
	return lost{}, fmt.Errorf("there is no backup of a deleted SampleDB %s", name)
}

// sideOf is the SampleDB whose second side one of a name was, "" where it was none.
func sideOf(all []lost, name string) string {
	for _, l := range all {
		for _, b := range l.all {
			if l.name != name && b.Spec.SampleDB == name {
				return l.name
			}
		}
	}
	return ""
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
