package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
	"toban.dev/test/played"
)

// players is how many objects are played at once.
const players = 16

// kubelet plays what there is of Kubernetes around its API server: StatefulSets get Pods, in which agents run,
// Deployments get a Pod, claims get volumes, and Jobs end well.
type kubelet struct {
	client.Client
	life   context.Context //nolint:containedctx // the agents live as long as the kubelet, and not as a request
	seen   *ledger
	octet  int // the second one of the agents' addresses
	mutex  sync.Mutex
	agents map[types.NamespacedName]*agent
}

// setup adds it to a manager.
func (k *kubelet) setup(m ctrl.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: players}
	err := ctrl.NewControllerManagedBy(m).Named("sets").For(&appsv1.StatefulSet{}).WithOptions(options).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(setOf)).
		Complete(reconcile.Func(k.playSet))
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(m).Named("deployments").For(&appsv1.Deployment{}).WithOptions(options).
		Complete(reconcile.Func(k.playDeployment))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("jobs").For(&batchv1.Job{}).WithOptions(options).
		Complete(reconcile.Func(k.playJob))
}

// setOf is the StatefulSet of an instance's Pod.
func setOf(_ context.Context, pod client.Object) []reconcile.Request {
	if pod.GetLabels()[naming.LabelComponent] != naming.ComponentInstance {
		return nil
	}
	set := naming.StatefulSet(pod.GetLabels()[naming.LabelSampleDB])
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: set}}}
}

func (k *kubelet) playSet(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &appsv1.StatefulSet{}
	if err := k.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i := range int(*set.Spec.Replicas) {
		if err := k.playInstance(ctx, set, i); err != nil {
			return again(err)
		}
	}
	if set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == *set.Spec.Replicas {
		return reconcile.Result{}, nil
	}
	played.Observe(set)
	return again(k.Status().Update(ctx, set))
}

// again leaves a conflict to the event that brings the newer version.
func again(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

// playInstance runs the Pod of an instance, with an agent, where it does not run.
func (k *kubelet) playInstance(ctx context.Context, set *appsv1.StatefulSet, ordinal int) error {
	pod, key := &corev1.Pod{}, types.NamespacedName{Namespace: set.Namespace, Name: naming.Instance(set.Name, ordinal)}
	err := k.Get(ctx, key, pod)
	if err == nil && pod.Status.PodIP != "" {
		return nil
	}
	if apierrors.IsNotFound(err) {
		pod, err = k.makePod(ctx, set, ordinal)
	}
	if err != nil {
		return err
	}
	host, err := k.runAgent(ctx, set, ordinal)
	if err != nil {
		return fmt.Errorf("run the agent of %s: %w", key.Name, err)
	}
	played.Run(pod, host)
	return k.Status().Update(ctx, pod)
}

// makePod binds the claim of an instance, and makes its Pod.
func (k *kubelet) makePod(ctx context.Context, set *appsv1.StatefulSet, ordinal int) (*corev1.Pod, error) {
	if err := k.bind(ctx, set.Namespace, naming.Claim(set.Name, ordinal)); err != nil {
		return nil, err
	}
	pod := played.Pod(set, ordinal)
	pod.Labels[naming.LabelRole] = string(roleOf(ordinal)) // which its agent would write
	return pod, k.Create(ctx, pod)
}

func roleOf(ordinal int) protocol.Role {
	if ordinal == 0 {
		return protocol.RolePrimary
	}
	return protocol.RoleStandby
}

// runAgent starts the agent of an instance with what its Pod mounts, and returns the address at which it listens.
func (k *kubelet) runAgent(ctx context.Context, set *appsv1.StatefulSet, ordinal int) (host string, err error) {
	db := set.Labels[naming.LabelSampleDB]
	mounted, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	name := types.NamespacedName{Namespace: set.Namespace, Name: naming.ConfigMap(db)}
	if err := k.Get(ctx, name, mounted); err != nil {
		return "", err
	}
	config, err := desired.ParseConfig(mounted)
	if err != nil {
		return "", err
	}
	ca := types.NamespacedName{Namespace: set.Namespace, Name: naming.AuthoritySecret(db)}
	if err := k.Get(ctx, ca, secret); err != nil {
		return "", err
	}
	key := types.NamespacedName{Namespace: set.Namespace, Name: naming.Instance(set.Name, ordinal)}
	if host, runs := k.placeOf(key); runs {
		return host, nil
	}
	held := authority{secret.Data[naming.KeyCA], secret.Data[naming.KeyCAKey]}
	a, err := newAgent(key, ordinal == 0, config, held, k.seen)
	if err != nil {
		return "", err
	}
	host = k.place(key, a)
	go func() {
		if err := a.serve(k.life, host); err != nil && k.life.Err() == nil {
			slog.Error("an agent has ended", "instance", key, "error", err.Error())
			os.Exit(1) // what is measured then would not be what it says
		}
	}()
	return host, nil
}

// placeOf is where the agent of an instance listens, if there is one.
func (k *kubelet) placeOf(key types.NamespacedName) (host string, runs bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	a, runs := k.agents[key]
	if !runs {
		return "", false
	}
	return a.host, true
}

// place notes an agent, and gives it an address of its own on the loopback interface.
func (k *kubelet) place(key types.NamespacedName, a *agent) string {
	const each = 250 // addresses with the same third number
	k.mutex.Lock()
	defer k.mutex.Unlock()
	a.host = fmt.Sprintf("127.%d.%d.%d", k.octet, len(k.agents)/each, len(k.agents)%each+1)
	k.agents[key] = a
	return a.host
}

// of are the agents of some SampleDBs.
func (k *kubelet) of(dbs []database) (out []*agent) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, db := range dbs {
		for _, name := range db.instances() {
			out = append(out, k.agents[name])
		}
	}
	return out
}

// playJob lets a Job end well. That which looks into the image, or takes a backup, leaves what it has found.
func (k *kubelet) playJob(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	job := &batchv1.Job{}
	if err := k.Get(ctx, request.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return reconcile.Result{}, nil
	}
	switch job.Spec.Template.Labels[naming.LabelComponent] {
	case naming.ComponentImage:
		err := k.leave(ctx, job, naming.ContainerImage,
			protocol.ImageResult{Version: serverVersion, CLibrary: "glibc 2.41"})
		if err != nil {
			return again(err)
		}
	case naming.ComponentBackup:
		if err := k.leave(ctx, job, naming.ContainerBackup, backupBy(job)); err != nil {
			return again(err)
		}
	}
	played.Complete(job, metav1.Now())
	return again(k.Status().Update(ctx, job))
}

// backupBy is what a Job says of the backup that it has taken.
func backupBy(job *batchv1.Job) protocol.BackupResult {
	now := time.Now().UTC()
	return protocol.BackupResult{
		ID: job.Name, Instance: naming.Instance(job.Labels[naming.LabelSampleDB], 0),
		StartLSN: "0/4000028", StopLSN: "0/4000100", ServerVersion: serverVersion, SystemIdentifier: systemIdentifier,
		Started: now, Stopped: now, Bytes: 25 << 20, Stored: 4 << 20, Earliest: now,
	}
}

// leave makes the Pod of a Job, which has ended, and has left what a container has found.
func (k *kubelet) leave(ctx context.Context, job *batchv1.Job, container string, found any) error {
	pod := podOf(job, job.Name+"-pod", job.Spec.Template)
	pod.Labels[batchv1.JobNameLabel] = job.Name
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if err := k.Create(ctx, pod); err != nil {
		return err
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}},
	}}
	return k.Status().Update(ctx, pod)
}

// podOf is a Pod by the template of its owner.
func podOf(owner client.Object, name string, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = owner.GetNamespace(), name
	return pod
}

// playDeployment runs the one Pod of a Deployment: of the server of an archive. Nobody asks it for anything here.
func (k *kubelet) playDeployment(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	d := &appsv1.Deployment{}
	if err := k.Get(ctx, request.NamespacedName, d); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if d.Status.ObservedGeneration == d.Generation {
		return reconcile.Result{}, nil
	}
	if err := k.runPod(ctx, d); err != nil {
		return again(err)
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if err := k.bind(ctx, d.Namespace, v.PersistentVolumeClaim.ClaimName); err != nil {
			return again(err)
		}
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
	}
	return again(k.Status().Update(ctx, d))
}

// runPod makes the Pod of a Deployment, which runs.
func (k *kubelet) runPod(ctx context.Context, d *appsv1.Deployment) error {
	pod := podOf(d, d.Name+"-pod", d.Spec.Template)
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	if err := k.Create(ctx, pod); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	played.Run(pod, "127.0.0.1")
	return k.Status().Update(ctx, pod)
}

// bind gives a claim its volume.
func (k *kubelet) bind(ctx context.Context, namespace, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := k.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, claim); err != nil {
		return fmt.Errorf("find a claim: %w", err)
	}
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	played.Bind(claim)
	return k.Status().Update(ctx, claim)
}
