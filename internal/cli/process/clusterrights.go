package process

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"toban.dev/internal/naming"
)

// clusterRight is one that only a ClusterRole can give (config/rbac/cluster.yaml). An operator that watches single
// namespaces does without.
type clusterRight struct {
	asked []authorizationv1.ResourceAttributes
	// without is what is different without it.
	without string
}

var (
	rightClasses = clusterRight{
		[]authorizationv1.ResourceAttributes{
			{Group: "storage.k8s.io", Resource: "storageclasses", Verb: "list"},
			{Group: "storage.k8s.io", Resource: "storageclasses", Verb: "watch"},
		},
		"StorageClasses can't be read: a missing class, or one that can't grow, is reported only after an attempt",
	}
	rightReaders = clusterRight{
		[]authorizationv1.ResourceAttributes{
			{Group: "authentication.k8s.io", Resource: "tokenreviews", Verb: "create"},
			{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"},
		},
		"metrics are not served: the operator can't check who may read them",
	}
	rightKinds = clusterRight{
		[]authorizationv1.ResourceAttributes{
			definitionRight(naming.DefinitionSampleDB), definitionRight(naming.DefinitionPostgreSQL),
		},
		"CustomResourceDefinitions can't be read: data stays at every deletion, whatever deletionPolicy says",
	}
)

func definitionRight(name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: name, Verb: "get",
	}
}

// clusterRights are which of them the operator has, where it has to know that from the start: a watch that is refused
// would be tried for ever.
type clusterRights struct{ classes, readers bool }

// findClusterRights asks the API server for them, and tells what is missing. Who watches all namespaces has them.
func (o operatorOptions) findClusterRights(ctx context.Context, config *rest.Config) (clusterRights, error) {
	if len(o.namespaces.Watched) == 0 {
		return clusterRights{classes: true, readers: true}, nil
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clusterRights{}, fmt.Errorf("make a client to ask for rights: %w", err)
	}
	reviews := clientset.AuthorizationV1().SelfSubjectAccessReviews()
	var out clusterRights
	if out.classes, err = rightClasses.has(ctx, reviews); err != nil {
		return out, err
	}
	if out.readers, err = rightReaders.has(ctx, reviews); err != nil {
		return out, err
	}
	_, err = rightKinds.has(ctx, reviews) // it is asked again when that is needed
	return out, err
}

// has asks whether the operator has the right, and tells what is different if not.
func (r clusterRight) has(
	ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface,
) (bool, error) {
	for i := range r.asked {
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r.asked[i]},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask for the right to %s %s: %w", r.asked[i].Verb, r.asked[i].Resource, err)
		}
		if !review.Status.Allowed {
			ctrl.Log.Info(r.without, "may not", r.asked[i].Verb+" "+r.asked[i].Resource+"."+r.asked[i].Group,
				"remedy", "docs/install.md: What a Role can't give")
			return false, nil
		}
	}
	return true, nil
}
