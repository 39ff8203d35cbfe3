package restore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/cli/root"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// readStore reads where archives are kept from a file: from the manifest of a SampleDB, or from what would stand in its
// spec.backup.
func readStore(path string) (*v1.SampleDB, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read where the archives are: %w", err)
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		db, err := storeIn(raw)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if db != nil {
			return db, nil
		}
	}
	return nil, fmt.Errorf("%s has no object store: it must have a SampleDB with spec.backup.store, "+
		"or what stands there, such as {store: {s3: {bucket: backups, credentials: {name: s3}}}}", path)
}

// storeIn is a SampleDB with the object store that a document names, nil where it names none.
func storeIn(document json.RawMessage) (*v1.SampleDB, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	db := &v1.SampleDB{}
	switch kind.Kind {
	case "SampleDB":
		if err := json.Unmarshal(document, db); err != nil {
			return nil, err
		}
	case "":
		db.Spec.Backup = &v1.BackupSpec{}
		if err := sigsyaml.UnmarshalStrict(document, db.Spec.Backup); err != nil {
			return nil, err
		}
	}
	if backup := desired.Backup(db); backup == nil || desired.IsVolume(backup.Store) {
		return nil, nil //nolint:nilnil // nothing to look into
	}
	return db, nil
}

// fromStore is what the store of --store has, found by a Pod in the namespace: it has the credentials and
// the network that the restore will have.
func (o *undeleteOptions) fromStore(ctx context.Context, api client.Client) (stored, error) {
	db, err := readStore(o.store)
	if err != nil {
		return stored{}, err
	}
	db.Namespace = o.Namespace
	image, err := o.operatorImage(ctx, api)
	if err != nil {
		return stored{}, err
	}
	pod, err := desired.FindPod(db, desired.Settings{Image: image},
		desired.Find{Namespace: o.origin(), Account: o.account, Unique: utilrand.String(5)})
	if err != nil {
		return stored{}, err
	}
	whole := func(text []byte) bool {
		_, err := readFound(text)
		return !errors.Is(err, errCut)
	}
	told := root.Escaped(os.Stderr)
	text, err := (&oneOffPod{Cluster: &o.Cluster, api: api, pod: pod, told: told, whole: whole}).run(ctx)
	found, read := readFound(text)
	if read == nil {
		return stored{databaseBackups(found, db.Spec.Backup), unreadOf(found)}, nil
	}
	if err == nil || !errors.Is(read, errCut) { // the program's own words say more than the end of its Pod
		err = read
	}
	return stored{}, fmt.Errorf("look into the store: %w", err)
}

// operatorImage is the image of the operator that is installed, if it was not given.
func (o *undeleteOptions) operatorImage(ctx context.Context, api client.Client) (string, error) {
	if o.image != "" {
		return o.image, nil
	}
	var all appsv1.DeploymentList
	err := api.List(ctx, &all, client.MatchingLabels{
		"app.kubernetes.io/name": naming.ManagedBy, "app.kubernetes.io/component": "operator",
	})
	if err != nil {
		return "", fmt.Errorf("look for the operator's image, which --image can name instead: %w", err)
	}
	for _, d := range all.Items {
		for _, c := range d.Spec.Template.Spec.Containers {
			return c.Image, nil
		}
	}
	return "", errors.New("no operator of Toban is installed: install it, or name its image with --image")
}

// errCut says that what a Pod has written has no end.
var errCut = errors.New("the Pod that looks has not told all")

// readFound reads what the Pod has written. The error is errCut where that has no end, or what the Pod says.
func readFound(text []byte) (found []protocol.FoundBackup, err error) {
	for _, text := range bytes.Split(text, []byte("\n")) {
		if !bytes.HasPrefix(text, []byte("{")) {
			continue // what it says to people as it ends, which may come before its last lines
		}
		var line protocol.FoundLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		switch {
		case line.Backup != nil:
			found = append(found, *line.Backup)
		case line.Error != "":
			return nil, errors.New(line.Error)
		case line.End:
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", errCut, io.ErrUnexpectedEOF)
}

// stored is what a store has: backups, and what could not be read there.
type stored struct {
	backups []v1.DatabaseBackup
	unread  []unread
}

// unread is an object of a store that could not be read, so that there may be a backup of which nothing is known.
type unread struct {
	Object string `json:"object"`
	// SampleDB is whose it is, where that is known.
	SampleDB string `json:"sampleDB,omitempty"`
	Problem  string `json:"problem"`
}

// unreadOf are the objects that could not be read of what was found.
func unreadOf(found []protocol.FoundBackup) (out []unread) {
	for _, f := range found {
		switch {
		case f.ID == "":
			out = append(out, unread{f.Path + "/" + format.FileArchive, "", f.Problem})
		case f.Stopped.IsZero():
			object := f.Path + "/" + format.FolderBase + f.ID + "/" + format.FileBackup
			out = append(out, unread{object, f.Name,
				both(cmp.Or(f.Problem, "it does not say when the backup ended"), byFolder(f))})
		}
	}
	return out
}

// ofName are those that may be of a SampleDB: its own, those of the second side of an upgrade, which may have served
// last, and those of which it is not known whose they are.
func ofName(all []unread, name string) []unread {
	return slices.DeleteFunc(slices.Clone(all), func(u unread) bool {
		return u.SampleDB != "" && u.SampleDB != name && u.SampleDB != naming.Green(name)
	})
}

// unsure is an error where nobody is asked, and an older backup would be taken by itself than there may be.
func (o *undeleteOptions) unsure(own []unread, asks bool) error {
	if len(own) == 0 || o.backup != "" || asks {
		return nil
	}
	return errors.New("a newer backup may be among what could not be read: say with --backup which one to take")
}

// unreadLines tell of what could not be read, "" for nothing.
func unreadLines(all []unread) string {
	if len(all) == 0 {
		return ""
	}
	out := "There may be more: not all of the store could be read.\n"
	for _, u := range all {
		whose := ""
		if u.SampleDB != "" {
			whose = " (of " + u.SampleDB + ")"
		}
		out += fmt.Sprintf("  %s%s: %s\n", u.Object, whose, u.Problem)
	}
	return out
}

// byFolder says how it is known whose a backup is, where its archive does not say so; else "".
func byFolder(f protocol.FoundBackup) string {
	if !f.ByFolder {
		return ""
	}
	return fmt.Sprintf("%s. By the name of its folder, %s, the archive is %s's",
		cmp.Or(f.NotSaid, format.FileArchive+" is lost"), f.Path, f.Name)
}

// databaseBackups are DatabaseBackups as they were before they were lost with their namespace, as far as the store
// knows. Their names are those of the backups in the archive. Those of which it is not known when they ended are none.
func databaseBackups(found []protocol.FoundBackup, of *v1.BackupSpec) []v1.DatabaseBackup {
	var out []v1.DatabaseBackup
	for _, f := range found {
		if f.ID == "" || f.Stopped.IsZero() {
			continue
		}
		stopped := metav1.NewTime(f.Stopped)
		b := v1.DatabaseBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.ID},
			Spec:       v1.DatabaseBackupSpec{SampleDB: f.Name},
		}
		if f.Trigger == naming.TriggerFinal {
			b.Name = naming.FinalBackup(f.Name, f.UID)
		}
		b.Status = v1.DatabaseBackupStatus{
			ID: f.ID, CompletedAt: &stopped, StopLSN: f.StopLSN, ServerVersion: f.ServerVersion,
			Size:    resource.NewQuantity(f.Bytes, resource.BinarySI).String(),
			Archive: &v1.ArchiveReference{Store: of.Store, Path: f.Path, Encryption: of.Encryption},
		}
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: v1.ConditionComplete, Status: metav1.ConditionTrue,
			Reason: v1.ReasonCompleted, Message: both(f.Problem, byFolder(f)),
		})
		if f.SampleDB != nil {
			b.Status.Manifest = &runtime.RawExtension{Raw: f.SampleDB}
		}
		out = append(out, b)
	}
	return out
}
