package v1

// MetricsSpec says which metrics the instances serve for Prometheus, and who may read them. docs/monitoring.md has all
// of it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.none) || !self.none || !has(self.queries) || size(self.queries) == 0",message="metrics.none turns the metrics off, so that nobody would ask metrics.queries: remove one of the two"
type MetricsSpec struct {
	// Turns the metrics of the instances off. Those of the operator stay.
	// +optional
	None bool `json:"none,omitempty"`

	// Who may read the metrics, on port 9187: items as in `ingress.from` of a NetworkPolicy. Without items, the Pods of
	// all namespaces with the label `toban.dev/metrics: read` may. The cluster's network must enforce NetworkPolicies.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	From []NetworkPeer `json:"from,omitempty"`

	// What the queries may read. Statistics is what the role pg_monitor may, and what is granted to everybody or to
	// toban_metrics. AllData is every table besides (pg_read_all_data), without pg_monitor.
	// +kubebuilder:default=Statistics
	// +optional
	QueriesRead QueriesRead `json:"queriesRead,omitempty"`

	// Queries of your own. The primary asks them, at most every 30 seconds and only when somebody reads its metrics.
	// One that fails disturbs nothing else; the condition QueriesAnswered says why it has.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Queries []MetricsQuery `json:"queries,omitempty"`
}

// QueriesRead is what users' queries for metrics may read.
// +kubebuilder:validation:Enum=Statistics;AllData
type QueriesRead string

// The values of QueriesRead.
const (
	QueriesReadStatistics QueriesRead = "Statistics"
	QueriesReadAllData    QueriesRead = "AllData"
)

// MetricsQuery is a query whose answer becomes metrics: each column a gauge toban_query_NAME_COLUMN, but for those
// that are labels. An answer may have 100 rows and 20 columns, and take five seconds.
type MetricsQuery struct {
	// What the metrics are called by, and the query in conditions.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="the name of a query becomes part of the names of metrics: it must start with a letter and have only lower-case letters, digits and '_'"
	// +required
	Name string `json:"name"`

	// One SELECT statement, without a semicolon. It runs as the role toban_metrics in a transaction that can't write.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	SQL string `json:"sql"`

	// The database that it runs in. Without it, the one of init.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Database string `json:"database,omitempty"`

	// The columns that are labels. All others must be numbers or booleans.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(l, l.matches('^[a-z_][a-z0-9_]*$') && !l.startsWith('__'))",message="a label must have only lower-case letters, digits and '_', start with no digit, and not with '__'"
	// +listType=set
	// +optional
	Labels []string `json:"labels,omitempty"`
}
