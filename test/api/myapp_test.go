package api

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// The article's manifest works as it is printed, and gives the status that the article shows.
func TestTheArticlesManifestRuns(t *testing.T) {
	w := newAppWorld(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "examples", "sample-app.yaml"))
	w.must(err)
	manifest := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal(text, manifest))
	manifest.SetNamespace(w.namespace)
	w.must(w.api.Create(t.Context(), manifest))
	app := w.again(w.app())
	w.ready(app, metav1.ConditionFalse, appv1.ReasonStarting)
	w.shows(app, `"phase":"Pending"`, `"ready":"0/3"`)
	if d := w.deployment(app); *d.Spec.Replicas != 3 || d.Spec.Template.Spec.Containers[0].Image != "nginx:1.25" ||
		!metav1.IsControlledBy(d, app) {
		t.Errorf("the Deployment is %s", jsonOf(t, d))
	}
	service := &corev1.Service{}
	w.read("sample-app", service)
	if p := service.Spec.Ports[0]; p.Port != 80 || p.TargetPort.String() != "http" ||
		service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("the Service is %s", jsonOf(t, service.Spec))
	}
	w.read("sample-app", &policyv1.PodDisruptionBudget{})

	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	w.shows(app, `"phase":"Running"`, `"readyReplicas":3`, `"replicas":3`, `"ready":"3/3"`, `"image":"nginx:1.25"`)
	w.rests(app)
	w.restart()
	w.rests(app)
	for _, path := range w.writes.reads() {
		if strings.Contains(path, "/secrets") {
			t.Errorf("it reads a Secret: %s", path)
		}
	}
}

func TestKubectlScale(t *testing.T) {
	w := newAppWorld(t)
	app := w.served()
	scale := &autoscalingv1.Scale{}
	w.must(w.api.SubResource("scale").Get(t.Context(), app, scale))
	if scale.Status.Replicas != 3 || scale.Status.Selector != "toban.dev/component=app,toban.dev/myapp=sample-app" {
		t.Errorf("it shows %s", jsonOf(t, scale))
	}
	scale.Spec.Replicas = 5
	w.must(w.api.SubResource("scale").Update(t.Context(), app, client.WithSubResourceBody(scale)))
	app = w.again(app)
	if n := *w.deployment(app).Spec.Replicas; n != 5 {
		t.Errorf("%d Pods are asked for", n)
	}
	if app.Status.Deployed.Revision != 1 {
		t.Errorf("it is called another version: %d", app.Status.Deployed.Revision)
	}
	w.playDeployment(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)

	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Replicas = ptr.To[int32](0) })
	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonStopped)
	if app.Status.Phase != "Stopped" || app.Status.Ready != "0/0" {
		t.Errorf("stopped it says %s", jsonOf(t, app.Status))
	}
	if w.find(app.Name, &policyv1.PodDisruptionBudget{}) {
		t.Error("there is a budget for no Pods")
	}
	w.rests(app)
}

// What somebody changes of the Deployment, adds to it or deletes is put back in one reconcile;
// nothing is written after it.
func TestTheDeploymentIsPutBack(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"the image":    func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.27" },
		"the replicas": func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) },
		"a variable": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DEBUG", Value: "1"}}
		},
		"a variable beside others": func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "DEBUG", Value: "1"})
		},
		"the value of a variable": func(d *appsv1.Deployment) {
			for i := range d.Spec.Template.Spec.Containers[0].Env {
				d.Spec.Template.Spec.Containers[0].Env[i].Value = "other"
			}
		},
		"a container": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
				corev1.Container{Name: "spy", Image: "spy"})
		},
		"a volume": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			}
		},
		"the label that it is known by": func(d *appsv1.Deployment) { delete(d.Labels, naming.LabelManagedBy) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			app := w.served(func(app *appv1.MyApp) {
				if name != "a variable" {
					app.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
				}
			})
			before := w.deployment(app)
			d := before.DeepCopy()
			change(d)
			w.must(w.api.Update(t.Context(), d, client.FieldOwner("kubectl-edit")))
			w.again(app)
			after := w.deployment(app)
			if was, is := jsonOf(t, before.Spec), jsonOf(t, after.Spec); was != is {
				t.Errorf("it was\n%s\nand is\n%s", was, is)
			}
			if after.Labels[naming.LabelManagedBy] != naming.ManagedBy {
				t.Errorf("it has the labels %v", after.Labels)
			}
			w.rests(w.again(app))
		})
	}
	t.Run("all of it", func(t *testing.T) {
		w := newAppWorld(t)
		app := w.served()
		before := w.deployment(app)
		w.must(w.api.Delete(t.Context(), before))
		app = w.again(app)
		if was, is := jsonOf(t, before.Spec), jsonOf(t, w.deployment(app).Spec); was != is {
			t.Errorf("it was\n%s\nand is\n%s", was, is)
		}
		w.ready(app, metav1.ConditionFalse, appv1.ReasonStarting)
		w.playDeployment(app)
		w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
	})
}

// What kubectl rollout restart writes is nobody's to undo, also with the next update.
func TestARolloutRestartIsNotUndone(t *testing.T) {
	const restarted = "kubectl.kubernetes.io/restartedAt"
	w := newAppWorld(t)
	app := w.served()
	d := w.deployment(app)
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Template.Annotations[restarted] = "2026-11-21T09:00:00Z"
	w.must(w.api.Patch(t.Context(), d, patch, client.FieldOwner("kubectl-rollout")))
	w.playDeployment(app)
	w.rests(app)
	w.change(app, image("nginx:1.26"))
	if d := w.deployment(app); d.Spec.Template.Annotations[restarted] == "" || w.runs(app) != "nginx:1.26" {
		t.Errorf("the Pods are made of %s", jsonOf(t, d.Spec.Template))
	}
}

// An object of a name that it needs is never taken over, but told; and when it goes, all goes on.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs"}}}},
	}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	ingress := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "x", Port: networkingv1.ServiceBackendPort{Number: 1}}}}}
	for name, c := range map[string]struct {
		object client.Object
		name   string
	}{
		"a Deployment":         {deployment, "sample-app"},
		"a Service":            {service, "sample-app"},
		"the leader's Service": {service, "sample-app-leader"},
		"an Ingress":           {ingress, "sample-app"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			theirs, ok := c.object.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("no object")
			}
			theirs.SetNamespace(w.namespace)
			theirs.SetName(c.name)
			w.must(w.api.Create(t.Context(), theirs))
			before := jsonOf(t, theirs)
			app := w.made(func(app *appv1.MyApp) {
				app.Spec.Leader, app.Spec.Ingress = true, &appv1.IngressSpec{Host: "shop.example.com", Path: "/"}
			})
			message := w.ready(app, metav1.ConditionFalse, appv1.ReasonNameTaken)
			if !strings.Contains(message, c.name+" does not belong to this MyApp") {
				t.Errorf("it says %q", message)
			}
			w.read(c.name, theirs)
			if jsonOf(t, theirs) != before {
				t.Errorf("it was\n%s\nand is\n%s", before, jsonOf(t, theirs))
			}
			w.writes.take()
			w.again(app)
			if writes := w.writes.take(); len(writes) != 1 || !strings.HasPrefix(writes[0], "POST ") {
				t.Errorf("it does more than to try again whether the name is free: %v", writes)
			}
			w.must(w.api.Delete(t.Context(), theirs))
			app = w.again(app)
			w.playDeployment(app)
			w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
		})
	}
}

// Each bad spec is refused by the API server, with a sentence that a person can act on.
func TestBadMyAppsAreRefusedWithTheirSentence(t *testing.T) {
	w := newAppWorld(t)
	database := func(app *appv1.MyApp) { app.Spec.Database = &appv1.DatabaseReference{Name: "shop"} }
	scaling := func(least, most int32) func(*appv1.MyApp) {
		return func(app *appv1.MyApp) {
			app.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			app.Spec.Autoscaling = &appv1.AutoscalingSpec{
				MinReplicas: least, MaxReplicas: most, TargetCPUUtilizationPercentage: 80,
			}
		}
	}
	ingress := func(host, path string) func(*appv1.MyApp) {
		return func(app *appv1.MyApp) { app.Spec.Ingress = &appv1.IngressSpec{Host: host, Path: path} }
	}
	for name, c := range map[string]struct {
		change func(*appv1.MyApp)
		want   string
	}{
		"no image": {image(""), "spec.image"},
		"an image with a space": {
			image("nginx 1.25"), "image must be the name of a container image, such as nginx:1.25, without spaces",
		},
		"fewer than none": {
			func(app *appv1.MyApp) { app.Spec.Replicas = ptr.To[int32](-1) }, "replicas must be from 0 to 1000",
		},
		"a port out of range": {func(app *appv1.MyApp) { app.Spec.Port = 70000 }, "port must be from 1 to 65535"},
		"a Service's port": {
			func(app *appv1.MyApp) { app.Spec.Service.Port = -1 }, "service.port must be from 1 to 65535",
		},
		"another kind of Service": {
			func(app *appv1.MyApp) { app.Spec.Service.Type = "ExternalName" }, `Unsupported value: "ExternalName"`,
		},
		"a variable of ours": {
			func(app *appv1.MyApp) { app.Spec.Env = []corev1.EnvVar{{Name: "TOBAN_IMAGE_TO"}} },
			"must not begin with TOBAN_",
		},
		"a variable twice": {
			func(app *appv1.MyApp) { app.Spec.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}} }, "Duplicate value",
		},
		"a ConfigMap with quotes": {
			func(app *appv1.MyApp) { app.Spec.Config.ConfigMaps = []appv1.ObjectName{`a"b`} },
			"the name of an object must have lower-case letters",
		},
		"a Secret in Unicode": {
			func(app *appv1.MyApp) { app.Spec.Config.Secrets = []appv1.ObjectName{"秘密"} },
			"the name of an object must have lower-case letters",
		},
		"a migration of nothing": {func(app *appv1.MyApp) {
			app.Spec.Migration = &appv1.MigrationSpec{Command: []string{"a"}, Deadline: metav1.Duration{Duration: 1e10}}
		}, "it needs spec.database"},
		"a migration without words": {func(app *appv1.MyApp) {
			database(app)
			app.Spec.Migration = &appv1.MigrationSpec{Deadline: metav1.Duration{Duration: 1e10}}
		}, "migration must say what is run"},
		"a migration without time": {func(app *appv1.MyApp) {
			database(app)
			app.Spec.Migration = &appv1.MigrationSpec{Command: []string{"a"}}
		},
			"migration.deadline must be from 1s to 168h"},
		"another kind of database": {
			func(app *appv1.MyApp) { app.Spec.Database = &appv1.DatabaseReference{Kind: "MySQL", Name: "shop"} },
			`Unsupported value: "MySQL"`,
		},
		"a database of the same name": {
			func(app *appv1.MyApp) { app.Spec.Database = &appv1.DatabaseReference{Name: app.Name} },
			"the application must have another name than its database",
		},
		"scaling without a request": {func(app *appv1.MyApp) {
			app.Spec.Autoscaling = &appv1.AutoscalingSpec{
				MinReplicas: 1, MaxReplicas: 2, TargetCPUUtilizationPercentage: 80,
			}
		}, "it needs spec.resources.requests.cpu"},
		"scaling from more to less": {
			scaling(3, 2), "autoscaling.minReplicas must not be greater than maxReplicas",
		},
		"scaling to nothing":            {scaling(1, 0), "autoscaling.maxReplicas must be from 1 to 1000"},
		"an Ingress with a scheme":      {ingress("https://shop.example.com", "/"), "ingress.host must be a host name"},
		"an Ingress in capital letters": {ingress("Shop.example.com", "/"), "ingress.host must be a host name"},
		"an Ingress's path":             {ingress("shop.example.com", "shop"), "ingress.path must begin with /"},
		"the node's rights": {func(app *appv1.MyApp) {
			app.Spec.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}, "securityContext.privileged would give the container all that its node may do"},
		"a label of ours": {
			func(app *appv1.MyApp) { app.Spec.Pod.Labels = map[string]string{naming.LabelLeaderOf: app.Name} },
			"pod.labels must not begin with toban.dev/",
		},
		"a name over the limit": {
			func(app *appv1.MyApp) { app.Name = strings.Repeat("n", naming.MaxName+1) },
			"metadata.name must be at most 40 characters",
		},
		"a name with a digit": {func(app *appv1.MyApp) { app.Name = "1app" }, "metadata.name must start with a letter"},
		"a name with a dot":   {func(app *appv1.MyApp) { app.Name = "a.b" }, "metadata.name must start with a letter"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, w.api.Create(t.Context(), w.app(c.change)), c.want) })
	}
}

// With the longest legal name, all that there can be can be made.
func TestTheLongestNameWorks(t *testing.T) {
	w := newAppWorld(t)
	w.postgres("shop")
	app := w.made(withMigration(true), func(app *appv1.MyApp) {
		app.Name, app.Spec.Leader = strings.Repeat("n", naming.MaxName), true
		app.Spec.Ingress = &appv1.IngressSpec{Host: "shop.example.com", Path: "/", TLSSecretName: "shop-tls"}
	})
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonBackingUp)
	w.endBackup(&w.backups()[0], "")
	w.again(app)
	w.endMigration("")
	app = w.again(app)
	w.playDeployment(app)
	w.again(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
}

// What only the API server can judge is told in its words, and what ran goes on.
func TestWhatTheAPIServerRefusesIsToldInItsWords(t *testing.T) {
	w := newAppWorld(t)
	app := w.served()
	app = w.change(app,
		func(app *appv1.MyApp) { app.Spec.ReadinessProbe, app.Spec.Image = &corev1.Probe{}, "nginx:1.26" })
	message := w.ready(app, metav1.ConditionFalse, appv1.ReasonInvalidSpec)
	if !strings.Contains(message, "must specify a handler type") {
		t.Errorf("it says %q", message)
	}
	if w.runs(app) != "nginx:1.25" || app.Status.Image != "nginx:1.25" || app.Status.Phase != "Degraded" {
		t.Errorf("it runs %s and says %s", w.runs(app), jsonOf(t, app.Status))
	}
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.ReadinessProbe = nil })
	w.playDeployment(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
}

// An error is returned, so that it is tried again with growing pauses, and shown.
func TestErrorsAreRetriedAndShown(t *testing.T) {
	w := newAppWorld(t)
	app := w.served()
	w.broken.name = app.Name
	before := w.fresh(app)
	before.Spec.Image = "nginx:1.26"
	w.must(w.api.Update(t.Context(), before))
	w.broken.name = "sample-app"
	if err := w.try(app); err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
		t.Errorf("it ends with %v", err)
	}
	// The status bears the same name, and its write does not go through Patch.
	app = w.fresh(app)
	if message := w.ready(app, metav1.ConditionFalse,
		appv1.ReasonRetrying); !strings.Contains(message, errBroken.Error()) {
		t.Errorf("it says %q", message)
	}
	if app.Status.ReadyReplicas != 3 || app.Status.Image != "nginx:1.25" || w.runs(app) != "nginx:1.25" {
		t.Errorf("it says %s", jsonOf(t, app.Status))
	}
	w.broken.name = ""
	app = w.again(app)
	w.playDeployment(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
}

func TestConfigMapsRollThePods(t *testing.T) {
	w := newAppWorld(t)
	app := w.made(func(app *appv1.MyApp) { app.Spec.Config.ConfigMaps = []appv1.ObjectName{"features"} })
	message := w.ready(app, metav1.ConditionFalse, appv1.ReasonConfigNotFound)
	if !strings.Contains(message, "ConfigMap features") || w.find(app.Name, &appsv1.Deployment{}) ||
		app.Status.Phase != "Pending" {
		t.Errorf("it says %q, %s", message, jsonOf(t, app.Status))
	}
	features := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "features"}, Data: map[string]string{"A": "1"},
	}
	w.must(w.api.Create(t.Context(), features))
	app = w.again(app)
	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	digest := func() string { return w.deployment(app).Spec.Template.Annotations[naming.AnnotationConfig] }
	first := digest()
	w.rests(app)

	features.Data["A"] = "2"
	w.must(w.api.Update(t.Context(), features))
	app = w.again(app)
	w.ready(app, metav1.ConditionFalse, appv1.ReasonUpdating)
	second := digest()
	if first == second || first == "" {
		t.Errorf("the Pods are not replaced: %q, %q", first, second)
	}
	if app.Status.Deployed.Revision != 1 {
		t.Error("a change of the configuration is called another version")
	}
	w.playDeployment(app)
	app = w.again(app)

	w.must(w.api.Delete(t.Context(), features))
	app = w.again(app)
	w.ready(app, metav1.ConditionFalse, appv1.ReasonConfigNotFound)
	if digest() != second || app.Status.Phase != "Degraded" {
		t.Errorf("a ConfigMap that is gone has changed the Pods: %q; %s", digest(), app.Status.Phase)
	}
	// An update that can't start its Pods is held back, and scaling is not.
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Image, app.Spec.Replicas = "nginx:1.26", ptr.To[int32](4) })
	if d := w.deployment(app); w.runs(app) != "nginx:1.25" || *d.Spec.Replicas != 4 {
		t.Errorf("it runs %s with %d Pods", w.runs(app), *d.Spec.Replicas)
	}
	w.rests(app)
}

// The operator can't read Secrets; who knows that one has changed says so.
func TestWhoKnowsOfAChangedSecretCanHaveThePodsReplaced(t *testing.T) {
	w := newAppWorld(t)
	w.postgres("shop")
	app := w.served(func(app *appv1.MyApp) {
		app.Spec.Config.Secrets, app.Spec.Database = []appv1.ObjectName{"payment"}, &appv1.DatabaseReference{
			Kind: appv1.DatabasePostgreSQL, Name: "shop",
		}
	})
	made := func() string { return w.deployment(app).Spec.Template.Annotations[naming.AnnotationTemplate] }
	first := made()
	app = w.change(app,
		func(app *appv1.MyApp) { app.Annotations = map[string]string{naming.AnnotationSecrets: "2026-11-21"} })
	second := made()
	if first == second {
		t.Error("the annotation does not replace the Pods")
	}
	pg := &pgv1.PostgreSQL{}
	w.read("shop", pg)
	pg.Status.SecretRevision = "2-0c0d"
	w.must(w.api.Status().Update(t.Context(), pg))
	app = w.again(app)
	third := made()
	if second == third {
		t.Error("another password of the database does not replace the Pods")
	}
	w.must(w.api.Delete(t.Context(), pg))
	w.again(app)
	if made() != third {
		t.Error("a database that is not there replaces the Pods")
	}
}

// Why new Pods do not come is told, and that the old ones serve.
func TestAnImageThatCantBePulledIsTold(t *testing.T) {
	w := newAppWorld(t)
	app := w.served()
	app = w.change(app, image("nginx:1.26"))
	w.setCounts(app, 4, 1, 3)
	w.runAppPod(w.deployment(app), "sample-app-new")
	w.setPod("sample-app-new", func(s *corev1.PodStatus) {
		s.Phase, s.Conditions = corev1.PodPending, isReady(false)
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "nginx:1.26", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}}}}
	})
	app = w.again(app)
	message := w.ready(app, metav1.ConditionFalse, appv1.ReasonImageUnusable)
	if !strings.Contains(message, "no such tag") || !strings.Contains(message, "3 Pods") ||
		app.Status.Phase != "Degraded" {
		t.Errorf("it says %s: %q", app.Status.Phase, message)
	}
	if !strings.Contains(w.drainEvents(), "no such tag") {
		t.Error("there is no event")
	}
	app = w.change(app, image("nginx:1.25"))
	w.must(w.api.Delete(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sample-app-new"}},
		client.GracePeriodSeconds(0)))
	w.playDeployment(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
}

// The autoscaler's number is left alone, also by a change of something else.
func TestAnAutoscalerHasItsOwnNumber(t *testing.T) {
	w := newAppWorld(t)
	app := w.served(func(app *appv1.MyApp) {
		app.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	})
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Autoscaling = &appv1.AutoscalingSpec{
			MinReplicas: 2, MaxReplicas: 9, TargetCPUUtilizationPercentage: 70,
		}
	})
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	w.read(app.Name, scaler)
	if scaler.Spec.MaxReplicas != 9 || *scaler.Spec.MinReplicas != 2 ||
		*scaler.Spec.Metrics[0].Resource.Target.AverageUtilization != 70 {
		t.Errorf("it is %s", jsonOf(t, scaler.Spec))
	}
	if n := *w.deployment(app).Spec.Replicas; n != 3 {
		t.Errorf("turning it on has made it %d Pods", n)
	}
	scaled := func(n int32) {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
		w.must(w.api.SubResource("scale").Update(t.Context(), w.deployment(app), client.WithSubResourceBody(scale),
			client.FieldOwner("horizontal-pod-autoscaler")))
		w.playDeployment(app)
	}
	scaled(7)
	app = w.again(app)
	if n := *w.deployment(app).Spec.Replicas; n != 7 || app.Status.Ready != "7/7" {
		t.Errorf("the autoscaler's 7 have become %d, %s", n, app.Status.Ready)
	}
	app = w.change(app, image("nginx:1.26"))
	if n := *w.deployment(app).Spec.Replicas; n != 7 || w.runs(app) != "nginx:1.26" {
		t.Errorf("with another image it has %d Pods of %s", n, w.runs(app))
	}
	scaled(8)
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Autoscaling = nil })
	if n := *w.deployment(app).Spec.Replicas; n != 3 || w.find(app.Name, &autoscalingv2.HorizontalPodAutoscaler{}) {
		t.Errorf("without it there are %d Pods", n)
	}
	w.playDeployment(app)
	w.rests(w.again(app))
}

// What the autoscaler has done since the cache was filled is not undone by a change of something else.
func TestAnAutoscalersNumberIsNotUndoneByALateCache(t *testing.T) {
	w := newAppWorld(t)
	app := w.served(func(app *appv1.MyApp) {
		app.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		app.Spec.Autoscaling = &appv1.AutoscalingSpec{
			MinReplicas: 2, MaxReplicas: 9, TargetCPUUtilizationPercentage: 70,
		}
	})
	// The first change is also the first by server-side apply.
	for _, name := range []string{"nginx:1.26", "nginx:1.27"} {
		w.broken.late = w.deployment(app)
		wanted := *w.broken.late.Spec.Replicas + 2
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: wanted}}
		w.must(w.api.SubResource("scale").Update(t.Context(), w.deployment(app), client.WithSubResourceBody(scale)))
		app = w.change(app, image(name))
		if n := *w.deployment(app).Spec.Replicas; n != wanted {
			t.Errorf("the autoscaler's %d have become %d", wanted, n)
		}
		w.broken.late = nil
		app = w.again(app)
		if n := *w.deployment(app).Spec.Replicas; n != wanted || w.runs(app) != name {
			t.Errorf("then it has %d Pods of %s", n, w.runs(app))
		}
	}
}

func TestHowItIsReachedCanChange(t *testing.T) {
	w := newAppWorld(t)
	app := w.served(func(app *appv1.MyApp) { app.Spec.Service.Type = corev1.ServiceTypeNodePort })
	service := &corev1.Service{}
	w.read(app.Name, service)
	port := service.Spec.Ports[0].NodePort
	if port == 0 {
		t.Fatalf("there is no node port: %s", jsonOf(t, service.Spec))
	}
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Service = appv1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Port: 8080, Annotations: map[string]string{"lb": "internal"},
		}
		app.Spec.Ingress = &appv1.IngressSpec{
			Host: "shop.example.com", Path: "/shop", ClassName: ptr.To("nginx"), TLSSecretName: "shop-tls",
		}
	})
	service = &corev1.Service{}
	w.read(app.Name, service)
	if s := service.Spec; s.Type != corev1.ServiceTypeLoadBalancer || len(s.Ports) != 1 || s.Ports[0].Port != 8080 ||
		service.Annotations["lb"] != "internal" {
		t.Errorf("the Service is %s", jsonOf(t, service))
	}
	ingress := &networkingv1.Ingress{}
	w.read(app.Name, ingress)
	if s := ingress.Spec; s.Rules[0].Host != "shop.example.com" || s.Rules[0].HTTP.Paths[0].Path != "/shop" ||
		s.TLS[0].SecretName != "shop-tls" || *s.IngressClassName != "nginx" {
		t.Errorf("the Ingress is %s", jsonOf(t, s))
	}
	w.rests(app)
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Service, app.Spec.Ingress = appv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Port: 80}, nil
	})
	service = &corev1.Service{}
	w.read(app.Name, service)
	if s := service.Spec; s.Type != corev1.ServiceTypeClusterIP || s.Ports[0].Port != 80 || s.Ports[0].NodePort != 0 ||
		len(service.Annotations) != 1 {
		t.Errorf("the Service is %s", jsonOf(t, service))
	}
	if w.find(app.Name, &networkingv1.Ingress{}) {
		t.Error("the Ingress is still there")
	}
	w.rests(app)
}

// The first Pods start when there is something to connect to; later ones do not wait.
func TestTheFirstPodsWaitForTheDatabase(t *testing.T) {
	w := newAppWorld(t)
	app := w.made(func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabaseSampleDB, Name: "shop"}
	})
	w.ready(app, metav1.ConditionFalse, appv1.ReasonDatabaseNotFound)
	db := w.sampleDB("shop")
	w.must(w.api.Create(t.Context(), db))
	app = w.again(app)
	w.ready(app, metav1.ConditionFalse, appv1.ReasonDatabaseNotReady)
	if w.find(app.Name, &appsv1.Deployment{}) || app.Status.Phase != "Pending" {
		t.Errorf("it does not wait: %s", app.Status.Phase)
	}
	for _, kind := range []string{v1.ConditionAvailable, v1.ConditionInitialized} {
		meta.SetStatusCondition(&db.Status.Conditions,
			metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Test"})
	}
	meta.SetStatusCondition(&db.Status.Conditions,
		metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonInstancesUnready})
	w.must(w.api.Status().Update(t.Context(), db))
	app = w.again(app)
	env := w.deployment(app).Spec.Template.Spec.Containers[0].Env
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "DATABASE_URL" })
	if i < 0 || env[i].ValueFrom.SecretKeyRef.Name != "shop-app" || env[i].ValueFrom.SecretKeyRef.Key != "uri" {
		t.Errorf("its environment is %s", jsonOf(t, env))
	}
	w.playDeployment(app)
	app = w.again(app)
	w.must(w.api.Delete(t.Context(), db))
	app = w.change(app, image("nginx:1.26"))
	if w.runs(app) != "nginx:1.26" {
		t.Error("an update waits for a database that what runs lacks just as much")
	}
}

// While it is being deleted, nothing is made anew that its deletion has just removed.
func TestNothingIsMadeForAMyAppThatIsBeingDeleted(t *testing.T) {
	w := newAppWorld(t)
	app := w.served(func(app *appv1.MyApp) { app.Finalizers = []string{"example.com/theirs"} })
	w.must(w.api.Delete(t.Context(), app))
	w.must(w.api.Delete(t.Context(), w.deployment(app)))
	app = w.again(app)
	w.ready(app, metav1.ConditionFalse, appv1.ReasonDeleting)
	if app.Status.Phase != "Deleting" || w.find(app.Name, &appsv1.Deployment{}) {
		t.Errorf("it says %s", app.Status.Phase)
	}
	w.rests(app)
}
