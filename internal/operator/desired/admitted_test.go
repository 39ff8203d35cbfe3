package desired

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// all are the forms of a SampleDB with the longest name that have, together, every kind of Pod.
func all(t *testing.T) map[string][]client.Object {
	t.Helper()
	whole := func(db *v1.SampleDB) {
		db.Spec.Storage.WAL = &v1.WALSpec{Size: "2Gi"}
		db.Spec.Readers = &v1.ReadersSpec{Autoscale: &v1.ReadersAutoscale{Min: 1, Max: 8, CPU: 70}}
		db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, ReadOnly: &v1.ReadPoolSpec{Instances: 1}}
		db.Spec.RestoreFrom = &v1.RestoreSpec{SampleDB: "other"}
		db.Spec.Image = "registry.example/postgres:17.1"
		db.Status.Upgrade = &v1.UpgradeStatus{ID: "18-0a1b2c", From: 17, To: 18, Step: v1.UpgradeClosing}
	}
	closed := func(db *v1.SampleDB) {
		db.Spec.Network.From = []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}
		db.Spec.Service.Route = v1.RouteRelay
	}
	return map[string][]client.Object{
		"on a volume":         objects(t, sampleDB(longest, onVolume, whole)),
		"in S3, from somehow": objects(t, sampleDB(longest, inS3, whole, closed)),
		"a PostgreSQL":        objectsOf(foodb(func(pg *pgv1.PostgreSQL) { pg.Name = longest })),
	}
}

// Whatever the name, the API server takes every object, and what makes Pods can make them.
func TestTheAPIServerTakesObjectsOfTheLongestName(t *testing.T) {
	for name, objects := range all(t) {
		t.Run(name, func(t *testing.T) {
			for _, object := range objects {
				checkMetadata(t, object)
				if pod := podOf(object); pod != nil {
					checkTemplate(t, object.GetName(), pod)
				}
			}
		})
	}
}

func checkMetadata(t *testing.T, object client.Object) {
	t.Helper()
	if errs := names.IsDNS1123Label(object.GetName()); len(errs) > 0 {
		t.Errorf("%T %s: %v", object, object.GetName(), errs)
	}
	for _, of := range metadataOf(object) {
		errs := append(unversioned.ValidateLabels(of.GetLabels(), field.NewPath("labels")),
			validation.ValidateAnnotations(of.GetAnnotations(), field.NewPath("annotations"))...)
		if len(errs) > 0 {
			t.Errorf("%T %s: %v", object, object.GetName(), errs)
		}
	}
}

func checkTemplate(t *testing.T, name string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	if errs := unversioned.ValidateLabels(pod.Labels, field.NewPath("labels")); len(errs) > 0 {
		t.Errorf("the Pods of %s: %v", name, errs)
	}
	for _, volume := range pod.Spec.Volumes {
		if errs := names.IsDNS1123Label(volume.Name); len(errs) > 0 {
			t.Errorf("the Pods of %s have a volume %s: %v", name, volume.Name, errs)
		}
	}
}

// podOf is the Pod that an object makes, nil where it makes none.
func podOf(object client.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	}
	return nil
}

// A namespace may enforce the Pod Security Standard "restricted", and have a quota of what is asked for. These are the
// controls of Kubernetes' page "Pod Security Standards". Only the container of PostgreSQL asks for what its user says.
func TestEveryPodIsRestrictedAndAsksForSomething(t *testing.T) {
	kinds := map[string]bool{}
	for _, objects := range all(t) {
		for _, object := range objects {
			if pod := podOf(object); pod != nil {
				kinds[pod.Labels[naming.LabelComponent]] = true
				for _, problem := range unrestricted(pod.Spec) {
					t.Errorf("%T %s: %s", object, object.GetName(), problem)
				}
			}
		}
	}
	if len(kinds) < 14 {
		t.Errorf("these kinds of Pods only were looked at: %v", kinds)
	}
}

// unrestricted is what "restricted" refuses of a Pod, and which containers ask for nothing.
func unrestricted(pod corev1.PodSpec) (out []string) {
	yes, no := true, false
	profile := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	if s := pod.SecurityContext; pod.HostNetwork || pod.HostPID || pod.HostIPC || s == nil || len(s.Sysctls) > 0 ||
		Hash([]any{s.RunAsNonRoot, s.SeccompProfile}) != Hash([]any{&yes, profile}) || *s.RunAsUser == 0 {
		out = append(out, "it may be root, lacks a seccomp profile, or has something of its node")
	}
	for _, v := range pod.Volumes {
		v.ConfigMap, v.Secret, v.EmptyDir = nil, nil, nil
		v.Projected, v.PersistentVolumeClaim, v.Ephemeral = nil, nil, nil
		if v.VolumeSource != (corev1.VolumeSource{}) {
			out = append(out, fmt.Sprintf("its volume %s is of a kind that is not allowed", v.Name))
		}
	}
	allowed := Hash(&corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	})
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if Hash(c.SecurityContext) != allowed {
			out = append(out, fmt.Sprintf("its container %s has rights that are not allowed", c.Name))
		}
		asks := !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero()
		if c.Name != naming.ContainerPostgreSQL && !asks {
			out = append(out, fmt.Sprintf("its container %s asks for no CPU or memory", c.Name))
		}
	}
	return out
}

// Where a namespace lets nobody in, a policy of ours lets in who uses a port: every one that a Pod declares is in a
// policy that selects the Pod, but for probes, which no policy keeps from a Pod's own node.
func TestEveryPortIsInANetworkPolicy(t *testing.T) {
	for name, objects := range all(t) {
		t.Run(name, func(t *testing.T) {
			for _, object := range objects {
				if pod := podOf(object); pod != nil {
					checkPorts(t, objects, object.GetName(), pod)
				}
			}
		})
	}
}

func checkPorts(t *testing.T, objects []client.Object, name string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	open := openPorts(t, objects, pod.Labels)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.Name != "probe" && !slices.Contains(open, p.ContainerPort) {
				t.Errorf("%s: nobody reaches the port %s %d", name, p.Name, p.ContainerPort)
			}
		}
	}
	// What serves metrics declares no port for them.
	switch component := pod.Labels[naming.LabelComponent]; component {
	case naming.ComponentInstance, naming.ComponentReader, naming.ComponentPooler, naming.ComponentReadPool:
		if !slices.Contains(open, int32(naming.PortMetrics)) {
			t.Errorf("%s: nobody reaches the metrics", name)
		}
	}
}

// openPorts are those at which policies let somebody reach Pods with some labels.
func openPorts(t *testing.T, objects []client.Object, of map[string]string) (out []int32) {
	t.Helper()
	for _, object := range objects {
		policy, is := object.(*networkingv1.NetworkPolicy)
		if !is {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(of)) {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			for _, p := range rule.Ports {
				out = append(out, p.Port.IntVal)
			}
		}
	}
	return out
}
