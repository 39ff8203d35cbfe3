package desired

import (
	"os"
	"regexp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// egressExample is the NetworkPolicy of docs/security.md for namespaces that deny what nothing allows.
func egressExample(t *testing.T) (policy networkingv1.NetworkPolicy, selects labels.Selector) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```yaml\n([^`]*name: toban-egress[^`]*)```").FindSubmatch(page)
	if text == nil {
		t.Fatal("docs/security.md has no NetworkPolicy toban-egress")
	}
	if err := yaml.UnmarshalStrict(text[1], &policy); err != nil {
		t.Fatal(err)
	}
	if selects, err = metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err != nil {
		t.Fatal(err)
	}
	return policy, selects
}

// podLabels are those of the Pods that an object makes, nil where it makes none.
func podLabels(object client.Object) map[string]string {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return o.Spec.Template.Labels
	case *appsv1.Deployment:
		return o.Spec.Template.Labels
	case *batchv1.Job:
		return o.Spec.Template.Labels
	case *corev1.Pod:
		return o.Labels
	}
	return nil
}

// openToOurs calls each with every port that the policy opens to Pods of the same SampleDB.
func openToOurs(policy *networkingv1.NetworkPolicy, each func(port int)) {
	for _, rule := range policy.Spec.Ingress {
		for _, from := range rule.From {
			if from.PodSelector == nil || from.PodSelector.MatchLabels[naming.LabelSampleDB] == "" {
				continue
			}
			for _, p := range rule.Ports {
				each(p.Port.IntValue())
			}
		}
	}
}

// leadsToOurs are the ports on which the example lets its Pods reach each other.
func leadsToOurs(policy networkingv1.NetworkPolicy) map[int]bool {
	out := map[int]bool{}
	for _, rule := range policy.Spec.Egress {
		for _, to := range rule.To {
			if to.PodSelector == nil || to.PodSelector.String() != policy.Spec.PodSelector.String() {
				continue
			}
			for _, p := range rule.Ports {
				out[p.Port.IntValue()] = true
			}
		}
	}
	return out
}

// The example of the page is for all Pods of a SampleDB, and lets them reach each other on each port that their own
// policies open to them.
func TestTheExampleOfEgressAllowsWhatOurPodsReach(t *testing.T) {
	policy, selects := egressExample(t)
	db := sampleDB("x", inS3, func(db *v1.SampleDB) {
		db.Spec.Network.From = []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}
		db.Spec.Service.Route = v1.RouteRelay
		db.Spec.Pooler = &v1.PoolerSpec{Instances: 2}
	})
	allowed := leadsToOurs(policy)
	pods, ports := 0, 0
	for _, object := range append(objects(t, db), objects(t, sampleDB("x", onVolume))...) {
		if of := podLabels(object); of != nil && of[naming.LabelComponent] != naming.ComponentFind {
			pods++
			if !selects.Matches(labels.Set(of)) {
				t.Errorf("%T %s: its Pods are not selected: %v", object, object.GetName(), of)
			}
		}
		own, is := object.(*networkingv1.NetworkPolicy)
		if !is {
			continue
		}
		openToOurs(own, func(port int) {
			ports++
			if !allowed[port] {
				t.Errorf("NetworkPolicy %s lets our Pods in on %d, and the example not out", own.Name, port)
			}
		})
	}
	if pods < 5 || ports < 4 {
		t.Errorf("only %d Pods and %d ports were looked at", pods, ports)
	}
}
