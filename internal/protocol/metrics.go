package protocol

// Metrics is what an agent has to know about the metrics that it serves; nil for the default, which is to serve them
// without any queries of users.
type Metrics struct {
	// None turns them off.
	None bool `json:"none,omitempty"`
	// AllData says that the users' queries may read every table, and not only statistics.
	AllData bool `json:"allData,omitempty"`
	// Queries are the users' own.
	Queries []MetricsQuery `json:"queries,omitempty"`
}

// MetricsQuery is a query of a user. Each column of its answer is a metric, but for those that are labels.
type MetricsQuery struct {
	Name     string   `json:"name"`
	Database string   `json:"database"`
	SQL      string   `json:"sql"`
	Labels   []string `json:"labels,omitempty"`
}

// QueriesStatus is what became of the users' queries when a primary has asked them last.
type QueriesStatus struct {
	// Asked is how many were asked, Problems are those that have failed.
	Asked    int            `json:"asked"`
	Problems []QueryProblem `json:"problems,omitempty"`
}

// QueryProblem is why a query has failed, in PostgreSQL's words, cut to what fits into a status.
type QueryProblem struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}
