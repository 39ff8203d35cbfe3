package myapp

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/myapp/v1"
	toban "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/index"
)

// observed is what there is. All comes from the cache but the ConfigMaps, which are the user's and in no cache.
type observed struct {
	deployment *appsv1.Deployment // nil where there is none of ours
	// pods are those of the application, migrationPods those of its migrations, jobs the migrations' Jobs.
	pods          []corev1.Pod
	migrationPods []corev1.Pod
	jobs          []batchv1.Job
	// config has the ConfigMaps that are named, without those that are not there.
	config map[v1.ObjectName]map[string]string
	// secrets are the versions of the Secrets that are named, "" where that can't be known; settled says
	// that all that can be is.
	secrets  map[string]string
	settled  bool
	database database
	backup   *toban.DatabaseBackup // the one before the migration, nil where there is none
	servers  servers
}

func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	for _, read := range []func(context.Context, *scope) error{
		r.observeDeployment, r.observePods, r.observeJobs, r.observeConfig, r.observeSecrets,
		r.observeDatabase, r.observeBackup, r.observeServers,
	} {
		if err := read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) observeDeployment(ctx context.Context, s *scope) error {
	have, err := index.Find(ctx, r.Client, s.app.Namespace, naming.App(s.app.Name), &appsv1.Deployment{})
	if have != nil && s.owner().Has(have) {
		s.seen.deployment = have
	}
	return err
}

func (r *Reconciler) observePods(ctx context.Context, s *scope) error {
	all, err := index.Pods(ctx, r.Client, s.app.Namespace, map[string]string{naming.LabelMyApp: s.app.Name})
	if err != nil {
		return err
	}
	for _, pod := range all {
		switch pod.Labels[naming.LabelComponent] {
		case naming.ComponentApp:
			s.seen.pods = append(s.seen.pods, pod)
		case naming.ComponentMigrate:
			s.seen.migrationPods = append(s.seen.migrationPods, pod)
		}
	}
	return nil
}

func (r *Reconciler) observeJobs(ctx context.Context, s *scope) error {
	all, err := index.Jobs(ctx, r.Client, s.app.Namespace, map[string]string{
		naming.LabelMyApp: s.app.Name, naming.LabelComponent: naming.ComponentMigrate,
	})
	if err != nil {
		return err
	}
	for _, job := range all {
		if metav1.IsControlledBy(&job, s.app) {
			s.seen.jobs = append(s.seen.jobs, job)
		}
	}
	if s.app.Spec.Migration != nil {
		s.job = myapp.MigrationJob(s.app, myapp.Update{From: s.running(), Revision: s.revision()})
	}
	return nil
}

// running is the image that runs, "" where none does.
func (s *scope) running() string {
	if s.deployed != nil {
		return s.deployed.Spec.Image
	}
	if s.seen.deployment != nil { // its status was lost
		return s.seen.deployment.Spec.Template.Spec.Containers[0].Image
	}
	return ""
}

// revision is that of what runs.
func (s *scope) revision() int64 {
	if s.deployed == nil {
		return 0
	}
	return s.deployed.Revision
}

// observeConfig reads the ConfigMaps of the spec and of what runs.
func (r *Reconciler) observeConfig(ctx context.Context, s *scope) error {
	names := s.app.Spec.Config.ConfigMaps
	if s.deployed != nil {
		names = append(names[:len(names):len(names)], s.deployed.Spec.Config.ConfigMaps...)
	}
	s.seen.config = map[v1.ObjectName]map[string]string{}
	for _, name := range names {
		if _, read := s.seen.config[name]; read {
			continue
		}
		have, err := index.Find(ctx, r.Reader, s.app.Namespace, string(name), &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		if have != nil {
			s.seen.config[name] = have.Data
		}
	}
	return nil
}

// observeSecrets looks which versions the Secrets of the spec and of what runs have.
func (r *Reconciler) observeSecrets(_ context.Context, s *scope) error {
	var names []string
	for _, name := range s.app.Spec.Config.Secrets {
		names = append(names, string(name))
	}
	if s.deployed != nil {
		for _, name := range s.deployed.Spec.Config.Secrets {
			names = append(names, string(name))
		}
	}
	key := client.ObjectKeyFromObject(s.app)
	r.Secrets.Follow(key, names...)
	s.seen.secrets, s.seen.settled = r.Secrets.Versions(key)
	return nil
}

// missing are the ConfigMaps of a spec that are not there, as "ConfigMap a, ConfigMap b".
func (s *scope) missing(spec v1.MyAppSpec) string {
	text := ""
	for _, name := range spec.Config.ConfigMaps {
		if _, there := s.seen.config[name]; there {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += "ConfigMap " + string(name)
	}
	return text
}

// digest is that of what is in the ConfigMaps of a spec. While one of them is not there it stays as it was: what is
// not known replaces no Pod.
func (s *scope) digest(spec v1.MyAppSpec) string {
	if len(spec.Config.ConfigMaps) == 0 {
		return ""
	}
	if s.missing(spec) != "" {
		return s.annotated(naming.AnnotationConfig)
	}
	var contents []any
	for _, name := range spec.Config.ConfigMaps {
		contents = append(contents, name, s.seen.config[name])
	}
	return desired.Hash(contents)
}

// annotated is an annotation of the Pods as the Deployment makes them now.
func (s *scope) annotated(key string) string {
	if s.seen.deployment == nil {
		return ""
	}
	return s.seen.deployment.Spec.Template.Annotations[key]
}
