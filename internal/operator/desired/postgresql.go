package desired

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// What the server of a PostgreSQL's own is where its spec does not say.
const (
	serverVersion = 17
	serverStorage = "1Gi"
)

// ServerOf is the SampleDB on which a PostgreSQL lies.
func ServerOf(pg *pgv1.PostgreSQL) pgv1.ServerReference {
	if pg.Spec.Server == nil {
		return pgv1.ServerReference{Name: pg.Name}
	}
	server := *pg.Spec.Server
	if server.Namespace == pg.Namespace {
		server.Namespace = ""
	}
	return server
}

// Server is the SampleDB of a PostgreSQL that has one of its own. Its database and roles are made later, by the
// primary's agent, because their passwords are in Secrets that may come later. What can't be changed any more, and is
// not in the spec, stays as have has it, nil where there is none yet: another release may have other defaults.
func Server(pg *pgv1.PostgreSQL, have *v1.SampleDB) *v1.SampleDB {
	db := &v1.SampleDB{
		ObjectMeta: databaseMeta(pg, pg.Name),
		Spec: v1.SampleDBSpec{
			Version:     serverVersion,
			Instances:   1,
			Storage:     v1.StorageSpec{Size: serverStorage},
			Init:        &v1.InitSpec{None: true},
			Backup:      pg.Spec.Backup.DeepCopy(),
			RestoreFrom: pg.Spec.RestoreFrom.DeepCopy(),
			Pooler:      pg.Spec.Pooler.DeepCopy(),
			Update:      pg.Spec.Update.DeepCopy(),
			Upgrade:     pg.Spec.Upgrade.DeepCopy(),
			Service:     v1.ServiceSpec{Type: corev1.ServiceTypeNodePort},
			Pod:         v1.PodSpec{Labels: map[string]string{naming.LabelShortName: pg.Name}},
		},
	}
	if have != nil {
		db.Spec.Version = have.Spec.Version
		db.Spec.Storage = *have.Spec.Storage.DeepCopy()
	}
	if pg.Spec.Version != nil {
		db.Spec.Version = *pg.Spec.Version
	}
	if pg.Spec.Instances != nil {
		db.Spec.Instances = *pg.Spec.Instances
	}
	if pg.Spec.Storage != nil {
		db.Spec.Storage = *pg.Spec.Storage.DeepCopy()
	}
	if pg.Spec.Resources != nil {
		db.Spec.Resources = *pg.Spec.Resources.DeepCopy()
	}
	if pg.Spec.Service != nil {
		db.Spec.Service = *pg.Spec.Service.DeepCopy()
	}
	if pg.Spec.Network != nil {
		db.Spec.Network = *pg.Spec.Network.DeepCopy()
	}
	if pg.Spec.TLS != nil {
		db.Spec.TLS = *pg.Spec.TLS.DeepCopy()
	}
	db.Spec.DeletionPolicy = pg.Spec.DeletionPolicy
	again := *pg.Spec.DeepCopy()
	again.RestoreFrom = nil
	db.Annotations = map[string]string{
		naming.AnnotationManifest: string(manifest(pg, pgv1.GroupVersion.WithKind("PostgreSQL"), again, nil).Raw),
	}
	return db
}

func databaseMeta(pg *pgv1.PostgreSQL, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: pg.Namespace,
		Labels: databaseLabels(pg),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(pg, pgv1.GroupVersion.WithKind("PostgreSQL")),
		},
	}
}

func databaseLabels(pg *pgv1.PostgreSQL) map[string]string {
	return map[string]string{
		naming.LabelManagedBy: naming.ManagedBy, naming.LabelInstance: pg.Name, naming.LabelPostgreSQL: pg.Name,
	}
}

// PasswordSecrets are the Secrets with the passwords of a PostgreSQL, each once.
func PasswordSecrets(pg *pgv1.PostgreSQL) []string {
	names := []string{string(pg.Spec.Password)}
	for _, role := range pg.Spec.Roles {
		if name := string(role.Password); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// PasswordsJob is a Job whose Pod tells the operator the passwords, sealed for the holder of a public key: its
// init container at once, and its container as soon as one changes. Missing Secrets do not keep it from starting:
// nobody else could say that they are missing. The versions are those of the Secrets, as far as they are known:
// for others there is another Job.
func PasswordsJob(pg *pgv1.PostgreSQL, settings Settings, public string, versions map[string]string) *batchv1.Job {
	secrets := PasswordSecrets(pg)
	object := databaseMeta(pg, naming.PasswordsJob(pg.Name,
		Hash([]any{secrets, versions, public, settings.Image, pg.Annotations[naming.AnnotationReload]})))
	object.Labels = merged(databaseLabels(pg), map[string]string{naming.LabelComponent: naming.ComponentPasswords})
	return workPasswords.Job(object, passwordsPod(secrets, settings, public)) // one that is lost is made again
}

func passwordsPod(secrets []string, settings Settings, public string) corev1.PodSpec {
	no, grace := false, int64(0) // it has nothing to finish
	volumes := []corev1.Volume{emptyVolume("known", corev1.StorageMediumMemory)}
	mounts := []corev1.VolumeMount{{Name: "known", MountPath: naming.PathKnownDir}}
	for i, secret := range secrets {
		name := fmt.Sprintf("password-%02d", i)
		volumes = append(volumes, optionalSecret(name, secret))
		mounts = append(mounts,
			corev1.VolumeMount{Name: name, MountPath: naming.PathPasswords + "/" + secret, ReadOnly: true})
	}
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: settings.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{naming.PathImageBinary, naming.VerbWork, "passwords", "--seal-for", public},
			Resources:       requests("1m", "16Mi"),
			SecurityContext: containerSecurity(),
			VolumeMounts:    mounts,
		}
	}
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		SecurityContext:               podSecurity(initUser),
		InitContainers:                []corev1.Container{container(naming.ContainerPasswords)},
		Containers:                    []corev1.Container{container(naming.ContainerChanges)},
		Volumes:                       volumes,
	}
}

// DatabaseSecret is NAME-app of a PostgreSQL: all that an application needs to connect as its user. It belongs to its
// revision, because the operator may create Secrets but not change or delete any: a Secret whose content is not true
// any more goes with that.
func DatabaseSecret(pg *pgv1.PostgreSQL, db *v1.SampleDB, password string, ca []byte) *corev1.Secret {
	object := databaseMeta(pg, naming.AppSecret(pg.Name))
	object.OwnerReferences = nil
	return &corev1.Secret{
		ObjectMeta: object,
		Type:       corev1.SecretTypeOpaque,
		Data:       connection(db, login{pg.Name, pg.Spec.DB, string(pg.Spec.User), password}, ca),
	}
}

// SecretRevision is what a Secret NAME-app belongs to. The digest tells one content from another and nothing about it.
func SecretRevision(pg *pgv1.PostgreSQL, digest string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: databaseMeta(pg, naming.AppRevision(pg.Name, digest)),
		Data:       runtime.RawExtension{Raw: fmt.Appendf(nil, `{"secret":%q}`, naming.AppSecret(pg.Name))},
		Revision:   1,
	}
}
