package faultdrill

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/naming"
)

// observeLeaders finds the Pods that lead the MyApps on the SampleDB.
func (s *scope) observeLeaders(ctx context.Context, a *target) error {
	var all appv1.MyAppList
	if err := s.Client.List(ctx, &all, client.InNamespace(s.Object.Namespace)); err != nil {
		return fmt.Errorf("list the MyApps: %w", err)
	}
	var users []appv1.MyApp
	for _, app := range all.Items {
		on, err := s.sampleDBOf(ctx, &app)
		if err != nil {
			return err
		}
		if on == s.seen.db.Name && app.DeletionTimestamp == nil {
			users = append(users, app)
		}
	}
	slices.SortFunc(users, func(a, b appv1.MyApp) int { return strings.Compare(a.Name, b.Name) })
	if s.seen.apps, s.seen.noApp = led(s.seen.db.Name, users); s.seen.noApp != "" || s.Object.Status.OrderedAt != nil {
		return nil
	}
	var names []string
	for _, app := range s.seen.apps {
		var pod corev1.Pod
		there, err := s.Find(ctx, app.Status.Leader, &pod)
		if err != nil {
			return err
		}
		if !there || pod.DeletionTimestamp != nil || pod.Labels[naming.LabelLeaderOf] != app.Name {
			s.seen.noApp = noLeader(app.Name)
			return nil
		}
		a.pods, names = append(a.pods, pod), append(names, pod.Name)
	}
	a.name = strings.Join(names, between)
	return nil
}

// sampleDBOf is the SampleDB of the same namespace that a MyApp is on, "" where it is on none, or that is not known.
func (r *Reconciler) sampleDBOf(ctx context.Context, app *appv1.MyApp) (string, error) {
	database := app.Spec.Database
	switch {
	case database == nil:
		return "", nil
	case database.Kind == appv1.DatabaseSampleDB:
		return database.Name, nil
	}
	var pg pgv1.PostgreSQL
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: app.Namespace, Name: database.Name}, &pg)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read PostgreSQL %s: %w", database.Name, err)
	}
	server := pg.Status.Server
	if err != nil || server == nil || server.Namespace != "" && server.Namespace != app.Namespace {
		return "", nil //nolint:nilerr // there is none, and that is no error
	}
	return server.Name, nil
}

// led are those of the MyApps on a SampleDB whose leaders may be killed. why is why there is none, "" where there is
// one and all have a leader. It is pure.
func led(db string, users []appv1.MyApp) (apps []appv1.MyApp, why string) {
	var elects []string
	for _, app := range users {
		if !app.Spec.Leader {
			continue
		}
		elects = append(elects, app.Name)
		if app.Annotations[naming.AnnotationFaultDrills] == naming.FaultDrillsAllowed {
			apps = append(apps, app)
		}
	}
	switch {
	case len(users) == 0:
		return nil, fmt.Sprintf("LeaderKilled takes a MyApp on this SampleDB, and no MyApp of the namespace has %s, "+
			"or a PostgreSQL on it, as its spec.database", db)
	case len(elects) == 0:
		return nil, fmt.Sprintf("LeaderKilled takes a MyApp with spec.leader, and none on this SampleDB has it (%s)",
			named(users))
	case len(apps) == 0:
		return nil, fmt.Sprintf("no MyApp on this SampleDB allows drills. Where one may lose its leader: kubectl "+
			"annotate myapp %s %s=%s", strings.Join(elects, " "), naming.AnnotationFaultDrills,
			naming.FaultDrillsAllowed)
	}
	for _, app := range apps {
		if app.Status.Leader == "" {
			return apps, noLeader(app.Name)
		}
	}
	return apps, ""
}

func noLeader(app string) string { return fmt.Sprintf("no Pod leads MyApp %s now", app) }

func named(apps []appv1.MyApp) string {
	var all []string
	for _, app := range apps {
		all = append(all, app.Name)
	}
	return strings.Join(all, between)
}
