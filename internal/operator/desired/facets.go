package desired

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// The facets of a Pod: what of the spec makes a running Pod be replaced when it
// changes. The operator's own image, its default image and everything else that
// comes with a new operator is none: installing one restarts no database, and
// what it changed reaches a Pod when that is restarted anyhow.
const (
	FacetImage = "image"
	// FacetDigest is that of the image on record. A Pod without it was made before there was one on record.
	FacetDigest     = "digest"
	FacetResources  = "resources"
	FacetScheduling = "scheduling"
	FacetMetadata   = "metadata"
	// FacetStore are the Secrets of the archive's store. A Pod without it has none of them.
	FacetStore = "store"
	// FacetCertificate is the Secret with the certificate for clients. A Pod without it has none.
	FacetCertificate = "certificate"
)

// facets is the annotation with each facet's value or hash. Comparing what was
// asked for, and not the Pods, keeps a webhook that changes Pods from making them restart.
func facets(db *v1.SampleDB, settings Settings) string {
	return encodeFacets(facetsOf(db, settings, orNone))
}

// facetsOf are the facets, with the lists and maps of the spec as given has them.
func facetsOf(db *v1.SampleDB, settings Settings, given func(any) any) map[string]string {
	pod := db.Spec.Pod
	all := map[string]string{
		FacetImage:     db.Spec.Image,
		FacetResources: Hash(db.Spec.Resources),
		FacetScheduling: Hash([]any{
			given(pod.NodeSelector), given(pod.Tolerations), pod.Affinity, pod.PriorityClassName,
		}),
		FacetMetadata: Hash([]any{given(pod.Labels), given(pod.Annotations)}),
	}
	if credentials, authority := storeSecrets(storeOf(db)); credentials != "" || authority != "" {
		all[FacetStore] = Hash([]any{credentials, authority})
	}
	if name := db.Spec.TLS.SecretName; name != "" {
		all[FacetCertificate] = name
	}
	if digest := recorded(db, settings); digest != "" {
		all[FacetDigest] = digest
	}
	return all
}

// orNone is a list or a map, nil where it is empty: whether somebody has written {} or nothing changes no Pod.
func orNone(value any) any {
	if reflect.ValueOf(value).Len() == 0 {
		return nil
	}
	return value
}

// asWritten is a list or a map as the spec has it: release 0.1.0 told an empty one from none.
func asWritten(value any) any { return value }

func encodeFacets(all map[string]string) string {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // a map of strings can't fail
	}
	return string(text)
}

// Outdated are the facets in which a running Pod is not as the SampleDB wants
// it, sorted. A facet that the Pod's operator did not know counts as equal, but for that of the
// store: without its Secrets in the Pod there would be no archive, so it counts as having none.
// Which image a Pod has that was made before one was on record matters only during an update.
func Outdated(db *v1.SampleDB, settings Settings, pod *corev1.Pod) []string {
	was, now := parseFacets(pod.Annotations[naming.AnnotationFacets]), facetsOf(db, settings, orNone)
	formerly := facetsOf(db, settings, asWritten)
	if _, known := was[FacetDigest]; !known && was != nil && replacing(db) {
		was[FacetDigest] = Digest(ImageID(pod, naming.ContainerPostgreSQL))
	}
	var out []string
	for name, value := range now {
		if Upgrades(db) && (name == FacetImage || name == FacetDigest) {
			continue // that is another major version's
		}
		old, known := was[name]
		mounts := name == FacetStore || name == FacetCertificate
		if (known || mounts && was != nil) && old != value && old != formerly[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// replacing says that an update is replacing the instances.
func replacing(db *v1.SampleDB) bool {
	return db.Status.Update != nil && db.Status.Update.Step == v1.UpdateReplacing
}

// Made says that a template is of the facets that the SampleDB wants, so that a Pod made of it is not outdated, and has
// the image on record.
func Made(db *v1.SampleDB, settings Settings, template metav1.ObjectMeta) bool {
	was := parseFacets(template.Annotations[naming.AnnotationFacets])
	return was[FacetDigest] == recorded(db, settings) &&
		len(Outdated(db, settings, &corev1.Pod{ObjectMeta: template})) == 0
}

// ImageID is the image that a container runs by its digest, as the kubelet says, "" where it does not yet.
func ImageID(pod *corev1.Pod, container string) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return strings.TrimPrefix(c.ImageID, "docker-pullable://")
		}
	}
	return ""
}

func parseFacets(text string) map[string]string {
	out := map[string]string{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		// Somebody has broken the annotation: nothing is known, so nothing restarts.
		return nil
	}
	return out
}
