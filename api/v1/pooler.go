package v1

import corev1 "k8s.io/api/core/v1"

// PoolerSpec says how clients are pooled. docs/connections.md has what that is.
// +kubebuilder:validation:XValidation:rule="!has(self.autoscale) || self.autoscale.max >= self.instances",message="pooler.autoscale.max must be at least pooler.instances, which is the least number of Pods"
type PoolerSpec struct {
	// How many Pods with PgBouncer there are, from 1 to 20.
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 20",message="pooler.instances must be from 1 to 20"
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// For how long a client has a server connection: Transaction, or Session, which is until it disconnects.
	// +kubebuilder:default=Transaction
	// +optional
	Mode PoolMode `json:"mode,omitempty"`

	// How many server connections all Pods together open at most to one database. By default: half of what
	// max_connections leaves to applications.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="pooler.connections must be from 1 to 10000"
	// +optional
	Connections int32 `json:"connections,omitempty"`

	// How many clients one Pod takes.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100000",message="pooler.maxClients must be from 1 to 100000"
	// +optional
	MaxClients int32 `json:"maxClients,omitempty"`

	// An image with pgbouncer, 1.24 or newer, on its PATH, instead of the operator's default.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// The processor time and memory of each Pod.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// More Pods when they use much CPU: from instances up to max.
	// +optional
	Autoscale *PoolerAutoscale `json:"autoscale,omitempty"`

	// How the Service NAME-pool is published.
	// +optional
	Service PoolServiceSpec `json:"service,omitempty"`

	// Pods for clients that only read, behind the Service NAME-pool-ro: they lead to the standbys.
	// +optional
	ReadOnly *ReadPoolSpec `json:"readOnly,omitempty"`
}

// PoolerAutoscale has a HorizontalPodAutoscaler change the number of Pods.
type PoolerAutoscale struct {
	// The greatest number of Pods.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 20",message="pooler.autoscale.max must be from 1 to 20"
	// +required
	Max int32 `json:"max"`

	// The use of the CPU that is aimed at, in hundredths of what pooler.resources.requests.cpu asks for.
	// +kubebuilder:default=70
	// +kubebuilder:validation:XValidation:rule="self >= 10 && self <= 400",message="pooler.autoscale.cpu must be from 10 to 400, in hundredths of pooler.resources.requests.cpu"
	// +optional
	CPU int32 `json:"cpu,omitempty"`
}

// PoolServiceSpec is how the Service NAME-pool is published.
type PoolServiceSpec struct {
	// ClusterIP, NodePort or LoadBalancer.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// Annotations of the Service, for instance for a cloud's load balancer.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ReadPoolSpec says how clients are pooled that only read. The rest is as PoolerSpec says.
type ReadPoolSpec struct {
	// How many Pods there are, from 1 to 20.
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 20",message="pooler.readOnly.instances must be from 1 to 20"
	// +optional
	Instances int32 `json:"instances,omitempty"`
}

// PoolMode is for how long a client has a server connection.
// +kubebuilder:validation:Enum=Transaction;Session
type PoolMode string

// The values of PoolMode.
const (
	PoolTransaction PoolMode = "Transaction"
	PoolSession     PoolMode = "Session"
)

// PoolerStatus is how the poolers are.
type PoolerStatus struct {
	// How many Pods take clients.
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// Which content the Secret NAME-pool was made with.
	// +optional
	Secret string `json:"secret,omitempty"`

	// Whether the Secret NAME-app was made with the pooler's connection strings, and with those for reading.
	// +optional
	App bool `json:"app,omitempty"`
	// +optional
	AppReadOnly bool `json:"appReadOnly,omitempty"`

	// How many Pods of `pooler.readOnly` take clients.
	// +optional
	ReadOnlyReady int32 `json:"readOnlyReady,omitempty"`
}
