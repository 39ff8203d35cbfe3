package report

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// reportKinds are the kinds of a SampleDB's objects that a report has, by their label. Secrets are not.
var reportKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// reportRequests are the kinds of which those are in a report that name the SampleDB in spec.sampleDB.
var reportRequests = []string{"DatabaseBackup", "DatabaseRestore", "FaultDrill"}

// addObjects writes the SampleDB and what belongs to it.
func (r *report) addObjects(ctx context.Context) error {
	own := client.MatchingLabels{naming.LabelSampleDB: r.db.Name}
	for _, gvk := range reportKinds {
		if err := r.addKind(ctx, gvk, nil, own); err != nil {
			return err
		}
	}
	named := func(o unstructured.Unstructured) bool { return o.GetName() == r.db.Name }
	if err := r.addKind(ctx, v1.GroupVersion.WithKind("SampleDB"), named); err != nil {
		return err
	}
	for _, kind := range reportRequests {
		of := func(o unstructured.Unstructured) bool {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "sampleDB")
			return name == r.db.Name
		}
		if err := r.addKind(ctx, v1.GroupVersion.WithKind(kind), of); err != nil {
			return err
		}
	}
	return nil
}

// addEvents writes the events about the SampleDB and what belongs to it: their names begin with its name.
func (r *report) addEvents(ctx context.Context) error {
	about := func(o unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		return name == r.db.Name || strings.HasPrefix(name, r.db.Name+"-") || strings.HasPrefix(name, "data-"+r.db.Name)
	}
	return r.addKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, about)
}

// addKind writes the objects of a kind that are wanted (all where that is nil) into a file, if there are any.
func (r *report) addKind(
	ctx context.Context, gvk schema.GroupVersionKind, wanted func(unstructured.Unstructured) bool,
	options ...client.ListOption,
) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.api.List(ctx, list, append(options, client.InNamespace(r.Namespace))...); err != nil {
		r.lacks("objects of the kind "+gvk.Kind, err)
		return nil
	}
	var text strings.Builder
	for _, object := range list.Items {
		if wanted != nil && !wanted(object) {
			continue
		}
		content, err := yaml.Marshal(redactObject(object.Object))
		if err != nil {
			return fmt.Errorf("write the %s %s: %w", gvk.Kind, object.GetName(), err)
		}
		text.WriteString("---\n")
		text.Write(content)
	}
	if text.Len() == 0 {
		return nil
	}
	return r.bundle.add("objects/"+strings.ToLower(gvk.Kind)+".yaml", []byte(text.String()))
}

// pods are all Pods of the SampleDB, those of Jobs too.
func (r *report) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	own := client.MatchingLabels{naming.LabelSampleDB: r.db.Name}
	err := r.api.List(ctx, &list, client.InNamespace(r.Namespace), own)
	return list.Items, err
}
