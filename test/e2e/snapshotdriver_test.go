//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"toban.dev/internal/operator/desired/volumes"
)

// snapshotKind is the kind of external-snapshotter.
const snapshotKind = "../api/testdata/volumesnapshots.yaml"

// brokenClass is a class of which the driver says that there is none.
const brokenClass = "missing"

// snapshotDriver is a CSI driver and the controller of snapshots in one, for the volumes of the local cluster, which
// are folders of this machine. As the CSI hostpath driver does, it copies files one after the other while they are
// written.
type snapshotDriver struct {
	*story
	folder string
	// node has the volumes that are made of snapshots: all nodes share the folders of this machine.
	node string
}

// startSnapshotDriver has the cluster get snapshots of volumes, and takes them away when the story ends.
func (s *story) startSnapshotDriver() {
	s.Helper()
	folder, err := os.MkdirTemp("/var/lib", "toban-snapshots-")
	must(s.T, err)
	d := snapshotDriver{s, folder, s.run("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")}
	s.run("apply", "--server-side", "-f", snapshotKind)
	ctx, end := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); d.serve(ctx) }()
	s.Cleanup(func() {
		end()
		<-ended
		d.leave()
	})
}

// leave removes the kind and the volumes. The Pods on them end with the namespace, which goes later.
func (d snapshotDriver) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, gone := d.Kubectl(ctx, "delete", "sampledb", "--all", "--timeout=2m")
	_, volumes := d.Kubectl(ctx, "delete", "pv", "-l", "story="+d.label(), "--wait=false")
	_, kind := d.Kubectl(ctx, "delete", "-f", snapshotKind, "--timeout=1m")
	if err := errors.Join(gone, volumes, kind, os.RemoveAll(d.folder)); err != nil {
		d.Errorf("take the snapshots away: %v", err)
	}
}

// label is what the volumes of the story have.
func (d snapshotDriver) label() string { return filepath.Base(d.folder) }

func (d snapshotDriver) serve(ctx context.Context) {
	for ctx.Err() == nil {
		if err := errors.Join(d.cutAll(ctx), d.provision(ctx)); err != nil && ctx.Err() == nil {
			d.Logf("the driver of snapshots tries again: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// read reads what kubectl get says of kinds that test/outside does not know.
func (d snapshotDriver) read(ctx context.Context, into any, what ...string) error {
	text, err := d.Kubectl(ctx, append([]string{"get", "-o", "json"}, what...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// cutAll copies the volumes of which there is to be a snapshot.
func (d snapshotDriver) cutAll(ctx context.Context) error {
	var all unstructured.UnstructuredList
	if err := d.read(ctx, &all, "volumesnapshots"); err != nil {
		return err
	}
	for _, one := range all.Items {
		if at, _, _ := unstructured.NestedString(one.Object, "status", "creationTime"); at != "" {
			continue
		}
		class, _, _ := unstructured.NestedString(one.Object, "spec", "volumeSnapshotClassName")
		status := fmt.Sprintf(`{"readyToUse":false,"error":{"message":"there is no class %s"}}`, class)
		if class != brokenClass {
			size, err := d.cut(ctx, one)
			if err != nil {
				return err
			}
			status = fmt.Sprintf(`{"readyToUse":true,"creationTime":%q,"restoreSize":%q}`,
				time.Now().UTC().Format(time.RFC3339), size)
		}
		_, err := d.Kubectl(ctx, "patch", "volumesnapshot", one.GetName(), "--subresource=status", "--type=merge",
			"-p", `{"status":`+status+`}`)
		if err != nil {
			return err
		}
	}
	return nil
}

// cut copies the volume of a claim, and says how large it is.
func (d snapshotDriver) cut(ctx context.Context, snapshot unstructured.Unstructured) (size string, err error) {
	name, _, _ := unstructured.NestedString(snapshot.Object, "spec", "source", "persistentVolumeClaimName")
	var claim corev1.PersistentVolumeClaim
	if err := d.read(ctx, &claim, "pvc", name); err != nil {
		return "", err
	}
	var volume corev1.PersistentVolume
	if err := d.read(ctx, &volume, "pv", claim.Spec.VolumeName); err != nil {
		return "", err
	}
	of := volume.Spec.Capacity[corev1.ResourceStorage]
	return of.String(), d.copy(volume.Spec.Local.Path, filepath.Join(d.folder, snapshot.GetName()))
}

// copy copies a folder whose files come and go meanwhile.
func (d snapshotDriver) copy(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	out, err := exec.Command("cp", "--archive", from, to).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "No such file or directory") {
			return fmt.Errorf("copy %s: %w: %s", from, err, out)
		}
	}
	return nil
}

// provision makes the volumes of the claims that are to be made of a snapshot.
func (d snapshotDriver) provision(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := d.read(ctx, &claims, "pvc"); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		source := claim.Spec.DataSource
		if source == nil || source.Kind != volumes.VolumeSnapshotKind.Kind || claim.Spec.VolumeName != "" {
			continue
		}
		name := d.label() + "-" + claim.Name
		there, err := d.Kubectl(ctx, "get", "pv", name, "--ignore-not-found", "-o", "name")
		if err != nil || there != "" {
			return err
		}
		path := filepath.Join(d.folder, "of-"+claim.Name)
		if err := d.copy(filepath.Join(d.folder, source.Name), path); err != nil {
			return err
		}
		if err := d.Apply(ctx, d.volume(name, path, claim)); err != nil {
			return err
		}
	}
	return nil
}

func (d snapshotDriver) volume(name, path string, claim corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s, labels: {story: %s}}
spec:
  capacity: {storage: %s}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %s
  claimRef: {namespace: %s, name: %s}
  local: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
`, name, d.label(), size.String(), *claim.Spec.StorageClassName, claim.Namespace, claim.Name, path, d.node)
}
