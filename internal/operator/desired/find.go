package desired

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// findDeadline is how long a look into a store may take, the pull of the image included (seconds).
const findDeadline int64 = 600

// Find is what is asked of a Pod that looks for backups.
type Find struct {
	// Namespace is that of the SampleDBs.
	Namespace string
	// Account is the ServiceAccount of the Pod, "" for the namespace's default one.
	Account string
	// Unique ends the name of the Pod.
	Unique string
}

// FindPod looks for backups in the store that a SampleDB's spec names. It is made by a person's command where nothing
// of the SampleDB is left but the store, so it uses no object but the Secrets that the spec names, and the account.
func FindPod(db *v1.SampleDB, settings Settings, asked Find) (*corev1.Pod, error) {
	backup := Backup(db)
	text, err := json.Marshal(protocol.FindSettings{
		Bucket: bucketConfig(backup.Store), Folder: asked.Namespace, Encrypted: backup.Encryption != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the settings: %w", err)
	}
	volumes, mounts := storeVolumes(backup.Store)
	if e := backup.Encryption; e != nil {
		volumes, mounts = append(volumes, optionalSecret(volumeKey, e.Key.Name)), append(mounts, keyMount())
	}
	deadline := findDeadline
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.ActiveDeadlineSeconds = &deadline
	pod.ServiceAccountName = asked.Account
	pod.Volumes = volumes
	pod.Containers = []corev1.Container{{
		Name:                     naming.ContainerFind,
		Image:                    settings.Image,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		Command:                  []string{naming.PathImageBinary, naming.VerbWork, "find", "--settings", string(text)},
		Env:                      storeEnv(backup.Store),
		Resources:                requests("10m", "64Mi"),
		SecurityContext:          containerSecurity(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             mounts,
	}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.FindPod(asked.Unique), Namespace: db.Namespace,
			Labels: map[string]string{naming.LabelComponent: naming.ComponentFind},
		},
		Spec: pod,
	}, nil
}
