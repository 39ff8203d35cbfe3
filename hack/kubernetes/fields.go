// Package kubernetes says which fields of our kinds have a type of Kubernetes' own. CRDs carry no description of what
// is inside of those, and the reference leads to Kubernetes' documentation instead. And it says how a time is written.
package kubernetes

// Fields are the paths of the fields, with the page that explains each.
//
//nolint:gosec // addresses of documents
var Fields = map[string]string{
	"spec.env": "https://kubernetes.io/docs/tasks/inject-data-application/" +
		"define-environment-variable-container/",
	"spec.readinessProbe":       probes,
	"spec.livenessProbe":        probes,
	"spec.startupProbe":         probes,
	"spec.securityContext":      "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
	"spec.podSecurityContext":   "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
	"spec.resources":            "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/",
	"spec.pooler.resources":     "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/",
	"spec.pod.tolerations":      "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
	"spec.pod.affinity":         "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
	"spec.pod.imagePullSecrets": "https://kubernetes.io/docs/concepts/containers/images/",
	"status.conditions": "https://kubernetes.io/docs/reference/generated/kubernetes-api/" +
		"v1.32/#condition-v1-meta",
	"spec.network.from[].podSelector":       selectors,
	"spec.network.from[].namespaceSelector": selectors,
	"spec.metrics.from[].podSelector":       selectors,
	"spec.metrics.from[].namespaceSelector": selectors,
	// Not Kubernetes', but explained elsewhere too: a copy of the spec.
	"status.deployed.spec": "myapp.md#spec",
}

const selectors = "https://kubernetes.io/docs/concepts/services-networking/network-policies/"

const probes = "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/"

// Time is the pattern of a field that is a time: RFC 3339 as Go's package time takes it. OpenAPI's format date-time
// allows small letters and any zone, and the API server takes a list for it.
const Time = `^(` + day + `)T([01]\d|2[0-3])(:[0-5]\d){2}([.]\d{1,9})?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$`

// day is a day that is in the calendar: 29 February only in years that have one. It is short, because a CRD has it as
// often as it has times.
const day = `\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|` +
	`(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29`
