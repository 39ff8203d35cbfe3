package myapp

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

func TestReplicas(t *testing.T) {
	scaling := &v1.AutoscalingSpec{MinReplicas: 2, MaxReplicas: 5}
	for name, c := range map[string]struct {
		spec    v1.MyAppSpec
		present *int32
		want    int32
	}{
		"one where nothing is said": {v1.MyAppSpec{}, nil, 1},
		"as many as the spec says":  {v1.MyAppSpec{Replicas: ptr.To[int32](3)}, ptr.To[int32](7), 3},
		"none":                      {v1.MyAppSpec{Replicas: ptr.To[int32](0)}, ptr.To[int32](7), 0},
		"an autoscaler's number is left alone": {
			v1.MyAppSpec{Replicas: ptr.To[int32](3), Autoscaling: scaling}, ptr.To[int32](4), 4,
		},
		"an autoscaler begins with the spec's number": {
			v1.MyAppSpec{Replicas: ptr.To[int32](3), Autoscaling: scaling}, nil, 3,
		},
		"but not with fewer than its least": {v1.MyAppSpec{Replicas: ptr.To[int32](1), Autoscaling: scaling}, nil, 2},
		"nor with more than its most":       {v1.MyAppSpec{Replicas: ptr.To[int32](9), Autoscaling: scaling}, nil, 5},
		"none also with an autoscaler, which does not stop": {
			v1.MyAppSpec{Replicas: ptr.To[int32](0), Autoscaling: scaling}, ptr.To[int32](4), 0,
		},
		"an autoscaler does not begin by itself after none": {
			v1.MyAppSpec{Replicas: ptr.To[int32](3), Autoscaling: scaling}, ptr.To[int32](0), 3,
		},
		"a number beyond its bounds is the autoscaler's too": {v1.MyAppSpec{Autoscaling: scaling}, ptr.To[int32](9), 9},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Replicas(c.spec, c.present); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// What an autoscaler does must not make the Deployment look changed.
func TestTheStampOfADeploymentIsNotOfItsReplicas(t *testing.T) {
	app := article("x")
	release := Release{Spec: app.Spec}
	if Deployment(app, release,
		3).Annotations[naming.AnnotationApplied] != Deployment(app, release, 9).Annotations[naming.AnnotationApplied] {
		t.Error("it is another one with other replicas")
	}
	release.Config = "other"
	if Deployment(app, Release{Spec: app.Spec},
		3).Annotations[naming.AnnotationApplied] == Deployment(app, release, 3).Annotations[naming.AnnotationApplied] {
		t.Error("it is the same with another config")
	}
}

func TestAVariableOfTheUserTakesThePlaceOfOneOfTheDatabase(t *testing.T) {
	app := article("x", withMigration)
	app.Spec.Env = []corev1.EnvVar{{Name: "PGSSLMODE", Value: "verify-full"}}
	count := 0
	for _, e := range environment(app.Spec) {
		if e.Name == "PGSSLMODE" {
			count++
			if e.Value != "verify-full" {
				t.Errorf("it is %s", e.Value)
			}
		}
	}
	if count != 1 {
		t.Errorf("it is there %d times", count)
	}
}

// The application connects through the pooler, its migration without one.
func TestAnApplicationConnectsThroughAPooler(t *testing.T) {
	app := article("x", withMigration)
	app.Spec.Database.Pooler = true
	key := func(env []corev1.EnvVar, name string) string {
		for _, e := range env {
			if e.Name == name && e.ValueFrom != nil {
				return e.ValueFrom.SecretKeyRef.Key
			}
		}
		return ""
	}
	pods := Deployment(app, Release{Spec: app.Spec}, 3).Spec.Template.Spec.Containers[0].Env
	job := MigrationJob(app, Update{}).Spec.Template.Spec.Containers[0].Env
	for name, want := range map[string][2]string{
		"PGHOST":       {naming.KeyPoolHost, naming.KeyHost},
		"DATABASE_URL": {naming.KeyPoolURI, naming.KeyURI},
	} {
		if got := [2]string{key(pods, name), key(job, name)}; got != want {
			t.Errorf("%s is of the keys %q, want %q", name, got, want)
		}
	}
}

func TestAVersionIsTheCodeAndTheSchema(t *testing.T) {
	was := Version(article("x", withMigration).Spec)
	for name, c := range map[string]struct {
		change func(*v1.MyAppSpec)
		other  bool
	}{
		"another image": {func(s *v1.MyAppSpec) { s.Image = "nginx:1.26" }, true},
		"another command": {
			func(s *v1.MyAppSpec) { s.Migration.Command = []string{"/shop", "up"} }, true,
		},
		"another image of migrations":   {func(s *v1.MyAppSpec) { s.Migration.Image = "m" }, true},
		"another database":              {func(s *v1.MyAppSpec) { s.Database.Name = "other" }, true},
		"through the pooler":            {func(s *v1.MyAppSpec) { s.Database.Pooler = true }, false},
		"no migration any more":         {func(s *v1.MyAppSpec) { s.Migration = nil }, true},
		"another number of Pods":        {func(s *v1.MyAppSpec) { s.Replicas = ptr.To[int32](9) }, false},
		"another variable":              {func(s *v1.MyAppSpec) { s.Env = []corev1.EnvVar{{Name: "A"}} }, false},
		"no backup before migrations":   {func(s *v1.MyAppSpec) { s.Migration.Backup = false }, false},
		"another deadline":              {func(s *v1.MyAppSpec) { s.Migration.Deadline.Duration *= 2 }, false},
		"the part that Pods are of":     {func(s *v1.MyAppSpec) { *s = PodPart(*s) }, false},
		"a Service of another kind":     {func(s *v1.MyAppSpec) { s.Service.Type = corev1.ServiceTypeNodePort }, false},
		"a leader where there was none": {func(s *v1.MyAppSpec) { s.Leader = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			app := article("x", withMigration)
			c.change(&app.Spec)
			if got := Version(app.Spec) != was; got != c.other {
				t.Errorf("another version: %v, want %v", got, c.other)
			}
		})
	}
}

// A migration that has failed is tried again when something has changed that may mend it, and not for anything else.
func TestAnAttemptIsAnotherWhereItMayEndOtherwise(t *testing.T) {
	from := Update{From: "nginx:1.24", Revision: 3}
	was := MigrationJob(article("x", withMigration), from).Name
	for name, c := range map[string]struct {
		change func(*v1.MyApp)
		other  bool
	}{
		"a retry is asked for": {
			func(a *v1.MyApp) { a.Annotations = map[string]string{naming.AnnotationRetry: "1"} }, true,
		},
		"a Secret has changed": {
			func(a *v1.MyApp) { a.Annotations = map[string]string{naming.AnnotationSecrets: "1"} }, true,
		},
		"a variable":              {func(a *v1.MyApp) { a.Spec.Env = []corev1.EnvVar{{Name: "A"}} }, true},
		"a longer deadline":       {func(a *v1.MyApp) { a.Spec.Migration.Deadline.Duration *= 2 }, true},
		"another object":          {func(a *v1.MyApp) { a.UID = "other" }, true},
		"nothing":                 {func(*v1.MyApp) {}, false},
		"more Pods":               {func(a *v1.MyApp) { a.Spec.Replicas = ptr.To[int32](9) }, false},
		"no backup any more":      {func(a *v1.MyApp) { a.Spec.Migration.Backup = false }, false},
		"a probe of the app's":    {func(a *v1.MyApp) { a.Spec.ReadinessProbe = &corev1.Probe{} }, false},
		"the Service":             {func(a *v1.MyApp) { a.Spec.Service.Port = 81 }, false},
		"a label of the MyApp":    {func(a *v1.MyApp) { a.Labels = map[string]string{"a": "b"} }, false},
		"its generation, as ever": {func(a *v1.MyApp) { a.Generation = 9 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			app := article("x", withMigration)
			c.change(app)
			if got := MigrationJob(app, from).Name != was; got != c.other {
				t.Errorf("another attempt: %v, want %v", got, c.other)
			}
		})
	}
	if MigrationJob(article("x", withMigration), Update{From: "nginx:1.24", Revision: 4}).Name == was {
		t.Error("going there a second time is the same Job")
	}
}
