package desired

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/naming"
)

// egressExample is the NetworkPolicy of docs/security.md for namespaces that deny all egress that no other policy
// allows.
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

// everyPod are objects that make a Pod for each thing that is done for a SampleDB.
func everyPod(t *testing.T) []client.Object {
	t.Helper()
	db := sampleDB("x", inS3)
	out := append(SidesObjects(t), FinishJob(db, settings, nil),
		PullJob(db, settings, Pull{Node: "worker1", Image: "registry.example/postgres@sha256:0a", Major: 17}))
	for name, objects := range all(t) {
		if name != "a PostgreSQL" { // its Jobs reach nothing
			out = append(out, objects...)
		}
	}
	return out
}

// ofSampleDBs are what the Pods of a SampleDB are for (naming.ComponentInstance and so on).
var ofSampleDBs = []string{
	naming.ComponentArchive, naming.ComponentBackup, naming.ComponentBring, naming.ComponentDrill,
	naming.ComponentFinish, naming.ComponentImage, naming.ComponentInit, naming.ComponentInstance,
	naming.ComponentPooler, naming.ComponentReadPool, naming.ComponentReader, naming.ComponentRehearse,
	naming.ComponentRestore, naming.ComponentSecond, naming.ComponentSides, naming.ComponentUpgrade,
	naming.ComponentVerify,
}

// The example of the page is for all Pods of a SampleDB, and lets them reach each other on each port that their own
// policies open to them.
func TestTheExampleOfEgressAllowsWhatOurPodsReach(t *testing.T) {
	policy, selects := egressExample(t)
	allowed := leadsToOurs(policy)
	pods, ports := map[string]bool{}, map[int]bool{}
	for _, object := range everyPod(t) {
		if of := podLabels(object); of != nil && of[naming.LabelComponent] != naming.ComponentFind {
			pods[of[naming.LabelComponent]] = true
			if !selects.Matches(labels.Set(of)) {
				t.Errorf("%T %s: its Pods are not selected: %v", object, object.GetName(), of)
			}
		}
		own, is := object.(*networkingv1.NetworkPolicy)
		if !is {
			continue
		}
		openToOurs(own, func(port int) {
			ports[port] = true
			if !allowed[port] {
				t.Errorf("NetworkPolicy %s lets our Pods in on %d, and the example not out", own.Name, port)
			}
		})
	}
	if got := slices.Sorted(maps.Keys(pods)); !slices.Equal(got, ofSampleDBs) {
		t.Errorf("looked at were the Pods for %v, want %v", got, ofSampleDBs)
	}
	if got := slices.Sorted(maps.Keys(ports)); !slices.Equal(got, []int{5432, 5433, 8443}) {
		t.Errorf("our Pods reach each other on %v", got)
	}
}

// Only the operator, agents and poolers reach an agent, and Jobs reach the archive's server: the table of the page says
// so.
func TestWhoReachesAgents(t *testing.T) {
	for _, object := range all(t)["in S3, from somehow"] {
		own, is := object.(*networkingv1.NetworkPolicy)
		if !is || own.Name != naming.NetworkPolicy(longest) {
			continue
		}
		for _, rule := range own.Spec.Ingress {
			if rule.Ports[0].Port.IntValue() != naming.PortAgent {
				continue
			}
			for _, from := range rule.From {
				for _, component := range ofSampleDBs {
					may := slices.Contains([]string{naming.ComponentInstance, naming.ComponentReader,
						naming.ComponentPooler, naming.ComponentReadPool}, component)
					if !may && selectsComponent(t, from.PodSelector, component) {
						t.Errorf("Pods for %s reach agents", component)
					}
				}
			}
		}
	}
}

// Whoever reads an archive, or writes it, reaches its server, and nobody else does.
func TestWhoReachesTheServerOfAnArchive(t *testing.T) {
	reach := []string{naming.ComponentBackup, naming.ComponentBring, naming.ComponentInstance, naming.ComponentRehearse,
		naming.ComponentRestore, naming.ComponentSecond, naming.ComponentVerify}
	var got []string
	for _, component := range ofSampleDBs {
		for _, rule := range ArchivePolicy(sampleDB(longest, onVolume)).Spec.Ingress {
			if slices.ContainsFunc(rule.From, func(p networkingv1.NetworkPolicyPeer) bool {
				return selectsComponent(t, p.PodSelector, component)
			}) {
				got = append(got, component)
			}
		}
	}
	if !slices.Equal(got, reach) {
		t.Errorf("it is reached by Pods for %v, want %v", got, reach)
	}
}

// selectsComponent says that a selector, nil for none, selects the Pods of a SampleDB that are for something.
func selectsComponent(t *testing.T, selector *metav1.LabelSelector, component string) bool {
	t.Helper()
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return selects.Matches(labels.Set{naming.LabelSampleDB: longest, naming.LabelComponent: component})
}
