package myapp

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/myapp/v1"
	toban "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/desiredtest"
)

// article is the MyApp of the article, with what the CRD adds to it, changed by the modifiers.
func article(name string, modify ...func(*v1.MyApp)) *v1.MyApp {
	app := &v1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("0b5c")},
		Spec: v1.MyAppSpec{
			Replicas: ptr.To[int32](3), Image: "nginx:1.25", Port: 80,
			Service: v1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Port: 80},
		},
	}
	for _, m := range modify {
		m(app)
	}
	return app
}

// withMigration gives it a database and a migration, and nothing else.
func withMigration(app *v1.MyApp) {
	app.Spec.Database = &v1.DatabaseReference{Kind: v1.DatabasePostgreSQL, Name: "shop"}
	app.Spec.Migration = &v1.MigrationSpec{
		Command: []string{"/shop", "migrate"}, Backup: true, Deadline: metav1.Duration{Duration: 10 * time.Minute},
	}
}

// full sets every field of the spec.
func full(app *v1.MyApp) {
	yes, no, user := true, false, int64(1000)
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")},
		}}
	}
	withMigration(app)
	app.Annotations = map[string]string{naming.AnnotationSecrets: "2026-11-21", naming.AnnotationRetry: "1"}
	s := &app.Spec
	s.Image, s.Command, s.Args, s.Port = "registry.example/shop:2.0", []string{"/shop"},
		[]string{"serve", "--port=8080"}, 8080
	s.Env = []corev1.EnvVar{{Name: "PGHOST", Value: "shop-ro"}, {Name: "GREETING", Value: "from $(PGUSER)"}}
	s.Config = v1.ConfigSpec{ConfigMaps: []v1.ObjectName{"features", "texts"}, Secrets: []v1.ObjectName{"payment"}}
	s.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.1")},
	}
	s.ReadinessProbe, s.LivenessProbe, s.StartupProbe = probe("/readyz"), probe("/livez"), probe("/started")
	s.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no}
	s.PodSecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user}
	s.Pod = toban.PodSpec{
		Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"note": "x"},
		NodeSelector:      map[string]string{"disk": "fast"},
		Tolerations:       []corev1.Toleration{{Key: "web", Operator: corev1.TolerationOpExists}},
		Affinity:          &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		PriorityClassName: "high",
		ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "pull"}},
	}
	s.Service = v1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Port: 8000, Annotations: map[string]string{"lb.example/internal": "true"},
	}
	s.Ingress = &v1.IngressSpec{
		Host: "shop.example.com", ClassName: ptr.To("nginx"), Path: "/", TLSSecretName: "shop-tls",
		Annotations: map[string]string{"cert-manager.io/cluster-issuer": "letsencrypt"},
	}
	s.Migration.Image, s.Migration.Args = "registry.example/shop-schema:2.0", []string{"--verbose"}
	s.Leader = true
	s.Autoscaling = &v1.AutoscalingSpec{MinReplicas: 2, MaxReplicas: 10, TargetCPUUtilizationPercentage: 70}
}

// A reviewer sees in the golden files how objects change. The longest legal name
// shows that every name made from it is legal too.
func TestObjectsAreAsInTheGoldenFiles(t *testing.T) {
	for name, app := range map[string]*v1.MyApp{
		"article":   article("sample-app"),
		"one":       article("one", func(app *v1.MyApp) { app.Spec.Replicas = nil }),
		"migration": article("migration", withMigration),
		"full":      article("full", full),
		"longest":   article(strings.Repeat("n", naming.MaxName), full),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			for _, object := range objects(app) {
				checkName(t, object)
				text, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				out.WriteString("---\n")
				out.Write(text)
			}
			desiredtest.Compare(t, filepath.Join("testdata", name+".yaml"), out.Bytes())
		})
	}
}

func objects(app *v1.MyApp) []client.Object {
	release := Release{Spec: app.Spec, Config: "0a0b0c0d", Secrets: app.Annotations[naming.AnnotationSecrets]}
	if len(app.Spec.Config.ConfigMaps) == 0 {
		release.Config = ""
	}
	if app.Spec.Database != nil {
		release.Connection = "7-0d0e"
	}
	out := []client.Object{Service(app), Deployment(app, release, Replicas(app.Spec, nil))}
	if app.Spec.Leader {
		out = append(out, LeaderService(app))
	}
	if app.Spec.Migration != nil {
		job := MigrationJob(app, Update{From: "nginx:1.24", Revision: 7})
		out = append(out, MigrationBackup(app, job, "shop"), job)
	}
	if app.Spec.Database != nil {
		out = append(out, DatabasePolicy(app, []string{"shop"}))
	}
	if budget := Budget(app); budget != nil {
		out = append(out, budget)
	}
	if scaler := Autoscaler(app); scaler != nil {
		out = append(out, scaler)
	}
	if ingress := Ingress(app); ingress != nil {
		out = append(out, ingress)
	}
	return out
}

// checkName holds names to 63 characters, and those of what makes Pods of itself to what leaves room for the ends.
func checkName(t *testing.T, object client.Object) {
	t.Helper()
	if errs := validation.IsDNS1123Label(object.GetName()); len(errs) > 0 {
		t.Errorf("name %q: %v", object.GetName(), errs)
	}
	if _, job := object.(*batchv1.Job); job && len(object.GetName()+"-abcde") > 63 {
		t.Errorf("Job %q leaves no room for what its Pods' names add", object.GetName())
	}
	for key, value := range object.GetLabels() {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("label %s=%s: %v", key, value, errs)
		}
	}
}
