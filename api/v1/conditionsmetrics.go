package v1

// Reasons of QueriesAnswered. None of them keeps Ready from being true.
const (
	// ReasonQueriesAnswered: PostgreSQL has answered all queries of `spec.metrics.queries`.
	// To do: nothing.
	ReasonQueriesAnswered = "QueriesAnswered"

	// ReasonQueryFailed: a query of `spec.metrics.queries` has failed, and its metrics are missing; the message names
	// it and quotes PostgreSQL. All other metrics are served.
	// To do: correct the query, or grant the role toban_metrics what it reads.
	ReasonQueryFailed = "QueryFailed"

	// ReasonQueriesNotAsked: it is not known whether the queries work: nobody has read the metrics of the primary since
	// they were given or it began to lead.
	// To do: nothing if Prometheus reads them every few minutes; otherwise see docs/monitoring.md.
	ReasonQueriesNotAsked = "QueriesNotAsked"
)
