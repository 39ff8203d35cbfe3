package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	toban "toban.dev/api/v1"
)

// MyApp is an application: its Pods, how they are reached, the database that it uses, and how both are
// brought from one version to the next.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=myapps,singular=myapp
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Pods that serve, of those wanted"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,description="The image that runs"
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`,description="The Pod that leads",priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the conditions"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`,description="Why it is as it is, in one word"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name must be at most 40 characters, because the names of Pods, Services and Jobs are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only lower-case letters, digits and '-', because a Service bears the same name"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.database) || self.spec.database.name != self.metadata.name",message="the application must have another name than its database: each has a Service of its name"
type MyApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the application should be. Only the image has to be given.
	// +required
	Spec MyAppSpec `json:"spec"`

	// What the operator last saw.
	// +optional
	Status MyAppStatus `json:"status,omitempty"`
}

// MyAppSpec is what a user wants an application to be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.migration) || has(self.database)",message="spec.migration changes the schema of the application's database: it needs spec.database"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || (has(self.resources) && ((has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)))",message="spec.autoscaling compares the use of the CPU with what is requested: it needs spec.resources.requests.cpu"
type MyAppSpec struct {
	// How many Pods are to run. 0 stops the application and keeps the rest. With autoscaling any
	// other number is left to that.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1000",message="replicas must be from 0 to 1000"
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// The container image, for instance nginx:1.25. A change of it is a new version: the Pods are replaced one after
	// the other, and where there is a migration, after that.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="image must be the name of a container image, such as nginx:1.25, without spaces"
	// +required
	Image string `json:"image"`

	// What is started in the container, where that is not what the image says.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// The arguments of the command, where they are not what the image says.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// The port that the application listens on.
	// +kubebuilder:default=80
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 65535",message="port must be from 1 to 65535"
	// +optional
	Port int32 `json:"port,omitempty"`

	// Variables of the environment. One that has the name of a variable of the database (PGHOST, ...) takes its place.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="!self.exists(e, e.name.startsWith('TOBAN_'))",message="the names of spec.env must not begin with TOBAN_: those are the operator's"
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// ConfigMaps and Secrets whose keys become variables of the environment.
	// +optional
	Config ConfigSpec `json:"config,omitempty"`

	// The processor time and memory of each Pod.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// When a Pod can serve. Without it a Pod serves as soon as its container runs.
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// When a container has to be started anew.
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// When a container has started; the other probes begin then.
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// What the container may do. It can't be privileged.
	// +kubebuilder:validation:XValidation:rule="!has(self.privileged) || !self.privileged",message="securityContext.privileged would give the container all that its node may do: leave it out, and name the capabilities that it needs"
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// What the Pod may do. Where it names no seccomp profile, that is the container runtime's own.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// The usual fields of the Pods.
	// +optional
	Pod toban.PodSpec `json:"pod,omitempty"`

	// The Service of the application, which bears its name.
	// +kubebuilder:default={}
	// +optional
	Service ServiceSpec `json:"service,omitempty"`

	// How the application is reached from outside by HTTP; not at all by default.
	// +optional
	Ingress *IngressSpec `json:"ingress,omitempty"`

	// The database that the application uses. It gets the connection's details as PGHOST, PGPORT, PGUSER, PGPASSWORD,
	// PGDATABASE, PGSSLMODE, PGSSLROOTCERT and DATABASE_URL, and the file that PGSSLROOTCERT names, by which it knows
	// the server. Its first Pods start when the database is there.
	// +optional
	Database *DatabaseReference `json:"database,omitempty"`

	// What brings the database's schema to the version of the image. It runs once before the first Pods, and
	// whenever the image or the migration itself changes; the Pods are replaced only after it has succeeded.
	// +optional
	Migration *MigrationSpec `json:"migration,omitempty"`

	// Choose one ready Pod as the leader. It bears the label toban.dev/leader-of, the Service NAME-leader leads to
	// it and to no other, and the file /etc/toban/leader/leader-of in it is not empty. It is no fence: a Pod that was
	// the leader may not have noticed yet that it is not.
	// +optional
	Leader bool `json:"leader,omitempty"`

	// Let the number of Pods follow the use of the CPU.
	// +optional
	Autoscaling *AutoscalingSpec `json:"autoscaling,omitempty"`
}

// ObjectName is the name of an object in the same namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="the name of an object must have lower-case letters, digits, '-' and '.' only"
type ObjectName string

// ConfigSpec names objects whose keys become variables of the environment. Of two with the same key the
// later one wins, Secrets after ConfigMaps, and spec.env over both.
type ConfigSpec struct {
	// ConfigMaps in the same namespace. When one changes, the Pods are replaced one after the other.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ConfigMaps []ObjectName `json:"configMaps,omitempty"`

	// Secrets in the same namespace. The operator does not read them: when one changes, set the annotation
	// toban.dev/secrets of this object to another text, or run kubectl rollout restart deployment/NAME.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Secrets []ObjectName `json:"secrets,omitempty"`
}

// ServiceSpec is how the application is published.
type ServiceSpec struct {
	// The type of the Service: ClusterIP, NodePort or LoadBalancer.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// The port of the Service.
	// +kubebuilder:default=80
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 65535",message="service.port must be from 1 to 65535"
	// +optional
	Port int32 `json:"port,omitempty"`

	// Annotations of the Service, for instance for a cloud's load balancer.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressSpec is how the application is reached from outside by HTTP.
type IngressSpec struct {
	// The host name, for instance shop.example.com.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="ingress.host must be a host name in lower case, such as shop.example.com or *.example.com, without a scheme, port or path"
	// +required
	Host string `json:"host"`

	// The IngressClass; the cluster's default class if not given.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClassName *string `json:"className,omitempty"`

	// The beginning of the paths that lead to the application.
	// +kubebuilder:default=/
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="ingress.path must begin with /"
	// +optional
	Path string `json:"path,omitempty"`

	// A Secret with the certificate (tls.crt and tls.key) for the host. Without it there is no HTTPS, unless the
	// controller has its own way.
	// +optional
	TLSSecretName ObjectName `json:"tlsSecretName,omitempty"`

	// Annotations of the Ingress, for instance for its controller or for cert-manager.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DatabaseReference names a database in the same namespace.
type DatabaseReference struct {
	// What it is: PostgreSQL (exp.wheel.jp) or SampleDB (toban.dev).
	// +kubebuilder:default=PostgreSQL
	// +optional
	Kind DatabaseKind `json:"kind,omitempty"`

	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`

	// Whether the application connects through the pooler of the SampleDB (spec.pooler), which it is on. Migrations
	// connect without one, because they may need a session of their own.
	// +optional
	Pooler bool `json:"pooler,omitempty"`
}

// DatabaseKind is a kind of database.
// +kubebuilder:validation:Enum=PostgreSQL;SampleDB
type DatabaseKind string

// The values of DatabaseKind.
const (
	DatabasePostgreSQL DatabaseKind = "PostgreSQL"
	DatabaseSampleDB   DatabaseKind = "SampleDB"
)

// MigrationSpec is what brings the database's schema to the version of the image. It has the application's environment,
// and TOBAN_IMAGE_FROM and TOBAN_IMAGE_TO.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.command) || has(self.args)",message="migration must say what is run: command or args (in the application's image), or an image of its own"
type MigrationSpec struct {
	// The image that has the migration in it; the application's by default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="migration.image must be the name of a container image, without spaces"
	// +optional
	Image string `json:"image,omitempty"`

	// What is started, where that is not what the image says.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// The arguments of the command, where they are not what the image says.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// Take a backup of the database before each migration, and wait for it. The SampleDB that the database lies on
	// must have spec.backup.
	// +optional
	Backup bool `json:"backup,omitempty"`

	// How long the migration may take. After that it is stopped and has failed.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="migration.deadline must be from 1s to 168h"
	// +optional
	Deadline metav1.Duration `json:"deadline,omitempty"`
}

// AutoscalingSpec lets the number of Pods follow the use of the CPU.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas must not be greater than maxReplicas"
type AutoscalingSpec struct {
	// The smallest number of Pods.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="autoscaling.minReplicas must be from 1 to 1000"
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// The greatest number of Pods.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="autoscaling.maxReplicas must be from 1 to 1000"
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// Which part of the requested CPU the Pods should use on average, in percent.
	// +kubebuilder:default=80
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="autoscaling.targetCPUUtilizationPercentage must be from 1 to 1000"
	// +optional
	TargetCPUUtilizationPercentage int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// MyAppStatus is what the operator saw.
type MyAppStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Running, Stopped, Updating, Migrating, Degraded, Failed or
	// Deleting. The conditions say why.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Ready Pods and wanted Pods, as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// The number of Pods there are.
	// +optional
	Replicas int32 `json:"replicas"`

	// The number of Pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// The label selector of the Pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The image that the Deployment runs.
	// +optional
	Image string `json:"image,omitempty"`

	// The Pod that leads. It is there with spec.leader.
	// +optional
	Leader string `json:"leader,omitempty"`

	// The last migration. It exists after the first one.
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// What the Deployment is made from: the spec, or while an update is held back, the former spec. The
	// operator keeps using it, even if somebody deletes the Deployment.
	// +optional
	Deployed *Deployed `json:"deployed,omitempty"`

	// What is true and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MigrationStatus is what became of a migration.
type MigrationStatus struct {
	// The image that it is for.
	Image string `json:"image"`

	// Its Job.
	// +optional
	Job string `json:"job,omitempty"`

	// The DatabaseBackup that was taken before it.
	// +optional
	Backup string `json:"backup,omitempty"`

	// When its Job began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// When it had succeeded. It is not there where it has not.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// How far it is, or why it failed, with the last words of its Pod.
	// +optional
	Message string `json:"message,omitempty"`
}

// Deployed is what a Deployment is made from.
type Deployed struct {
	// It grows with each new version that is rolled out.
	Revision int64 `json:"revision"`

	// The part of the spec that the Pods are made from.
	Spec MyAppSpec `json:"spec"`
}

// MyAppList is a list of MyApps.
//
// +kubebuilder:object:root=true
type MyAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MyApp `json:"items"`
}

func init() {
	SchemeBuilder.Register(&MyApp{}, &MyAppList{})
}
