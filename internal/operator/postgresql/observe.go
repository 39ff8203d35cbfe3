package postgresql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// observed is what is there.
type observed struct {
	// db is the server, nil where there is none. config is what its agents have.
	db     *v1.SampleDB
	config protocol.Config
	// clients are the authorities (PEM) by which clients know the servers.
	clients string
	// primary is the address of the instance that takes writes, "" where none is known; reachable says
	// that Services lead to it.
	primary   string
	reachable bool
	// instances are the Pods of a server of its own.
	instances []corev1.Pod
	// jobs are those that read passwords.
	jobs []batchv1.Job
	pods []corev1.Pod
}

func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	if err := r.observeServer(ctx, s); err != nil {
		return err
	}
	mine := map[string]string{naming.LabelPostgreSQL: s.pg.Name, naming.LabelComponent: naming.ComponentPasswords}
	jobs, err := index.Jobs(ctx, r.Client, s.pg.Namespace, mine)
	if err != nil {
		return err
	}
	s.seen.jobs = slices.DeleteFunc(jobs, func(j batchv1.Job) bool { return !metav1.IsControlledBy(&j, s.pg) })
	s.seen.pods, err = index.Pods(ctx, r.Client, s.pg.Namespace, mine)
	return err
}

func (r *Reconciler) observeServer(ctx context.Context, s *scope) error {
	key := serverKey(s.pg)
	if s.unwatched = !r.Namespaces.Has(key.Namespace); s.unwatched {
		return nil
	}
	db := &v1.SampleDB{}
	if err := r.Client.Get(ctx, key, db); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read the SampleDB %s: %w", key, err)
	}
	s.seen.db = db
	instances, err := index.Pods(ctx, r.Client, db.Namespace, naming.InstanceSelector(db.Name))
	if err != nil {
		return err
	}
	for _, pod := range instances {
		if pod.Name == db.Status.Primary && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			s.seen.primary, s.seen.reachable = pod.Status.PodIP, pods.Ready(&pod)
		}
	}
	if s.pg.Spec.Server == nil {
		s.seen.instances = instances
	}
	config := &corev1.ConfigMap{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: db.Namespace, Name: naming.ConfigMap(db.Name)}, config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the configuration of %s: %w", key, err)
	}
	parsed, err := desired.ParseConfig(config)
	if err != nil {
		return err
	}
	s.seen.config, s.seen.clients = parsed, parsed.ClientAuthorities()
	return nil
}

// view is all that the decision depends on.
func (s *scope) view() view {
	v := view{server: s.server(), read: true, was: wasReady(s.pg), reason: s.unread.Reason, message: s.unread.Message}
	// That a namespace may make databases there does not make the ones that are there its own.
	v.stranger = s.pg.Spec.Adopt && serverKey(s.pg).Namespace != s.pg.Namespace
	for _, name := range desired.PasswordSecrets(s.pg) {
		found, there := s.found[name]
		v.read = v.read && there
		if found.Problem != "" && v.reason == "" {
			v.reason, v.message = wrongPassword(name, found.Problem)
		}
	}
	return v
}

// server is how the SampleDB is.
func (s *scope) server() serverView {
	db, name := s.seen.db, serverKey(s.pg)
	switch {
	case s.unwatched:
		return serverView{serverDenied, fmt.Sprintf("the SampleDB %s is out of this operator's reach: it does not "+
			"watch the namespace %s", name, name.Namespace)}
	case db == nil:
		return serverView{serverMissing, fmt.Sprintf("there is no SampleDB %s", name)}
	case !allowed(db, s.pg.Namespace):
		return serverView{serverDenied, fmt.Sprintf("the SampleDB %s does not allow databases of the namespace %s: "+
			"add the namespace to its annotation %s", name, s.pg.Namespace, naming.AnnotationDatabasesFrom)}
	case db.DeletionTimestamp != nil:
		return serverView{serverBusy, fmt.Sprintf("the SampleDB %s is being deleted", name)}
	case db.Status.Stop.Sleeps():
		return serverView{serverStopped, fmt.Sprintf("the SampleDB %s sleeps (spec.sleepAfter): its databases are as "+
			"they were, and a client that comes through its pooler wakes it", name)}
	case db.Status.Stop.Closed():
		return serverView{serverStopped, fmt.Sprintf("the SampleDB %s is stopped (spec.stopped): its databases are as "+
			"they were, and can be used after the start", name)}
	case desired.TwoSides(db):
		return serverView{serverHeld, fmt.Sprintf("the SampleDB %s is in a blue/green upgrade: what is declared "+
			"meanwhile is made when that has ended", name)}
	case s.seen.primary == "" || s.seen.config.Authority == "" ||
		!meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAvailable):
		message := fmt.Sprintf("the SampleDB %s takes no writes now", name)
		if c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAvailable); c != nil {
			message += ": " + c.Message
		}
		return serverView{serverBusy, message}
	}
	return serverView{serverReady, ""}
}

// allowed says that a SampleDB takes databases of a namespace.
func allowed(db *v1.SampleDB, namespace string) bool {
	if db.Namespace == namespace {
		return true
	}
	for entry := range strings.SplitSeq(db.Annotations[naming.AnnotationDatabasesFrom], ",") {
		if entry = strings.TrimSpace(entry); entry == namespace || entry == "*" {
			return true
		}
	}
	return false
}

func wasReady(pg *pgv1.PostgreSQL) bool {
	c := meta.FindStatusCondition(pg.Status.Conditions, pgv1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == pg.Generation
}
