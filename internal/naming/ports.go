package naming

// Ports.
const (
	PortPostgreSQL = 5432
	PortRelay      = 5433 // clients that an agent passes on to whom it knows to lead
	PortAgent      = 8443 // mTLS: peers and operator
	PortProbe      = 8080 // HTTP: kubelet's probes
	PortMetrics    = 9187 // HTTP: metrics for Prometheus, where postgres_exporter has them
)
