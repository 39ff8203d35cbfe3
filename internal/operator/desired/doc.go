// Package desired says which Kubernetes objects a SampleDB should have: pure
// functions from the spec, with golden files in testdata, so that a reviewer sees
// an object change. It must not import a client, a clock or anything that reads
// the world: what an object depends on besides the spec is a parameter.
package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Settings are the operator's own, the same for every SampleDB.
type Settings struct {
	// Image is the operator's image: the install container and the init Job run it.
	Image string
	// PostgreSQL is the repository of the PostgreSQL images; the major version is the tag.
	PostgreSQL string
	// Pooler is the image with PgBouncer.
	Pooler string
	// Namespace is the operator's; NetworkPolicies let it in.
	Namespace string
}

// Instances is how many instances are wanted, at least one.
func Instances(db *v1.SampleDB) int { return max(1, int(db.Spec.Instances)) }

// Owner makes an object of the SampleDB go when it goes.
func Owner(db *v1.SampleDB) metav1.OwnerReference {
	return *metav1.NewControllerRef(db, v1.GroupVersion.WithKind("SampleDB"))
}

// meta is the metadata of an object that belongs to the SampleDB.
func meta(db *v1.SampleDB, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       db.Namespace,
		Labels:          naming.Common(db.Name),
		OwnerReferences: []metav1.OwnerReference{Owner(db)},
	}
}

// ordered is the Job of an order about a SampleDB, which goes with the order.
func ordered(db *v1.SampleDB, order metav1.Object, kind, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: order.GetNamespace(), Labels: merged(naming.Common(db.Name), labels),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(order, v1.GroupVersion.WithKind(kind))},
	}
}

// settingsConfigMap has the settings of a Pod under a key, as JSON.
func settingsConfigMap(db *v1.SampleDB, name, key string, settings any) (*corev1.ConfigMap, error) {
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(db, name), Data: map[string]string{key: string(text) + "\n"},
	}, nil
}

// merged has the entries of all maps; a later one wins.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// Hash identifies a value by its JSON, in 8 hexadecimal digits: short enough for
// names, and nobody gains from a collision.
func Hash(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		// Only a channel, a function or an invalid number fails; a value of the API has none.
		return "unhashable"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}
