package pooler

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// everywhere has PgBouncer listen on all addresses.
const everywhere = "*"

// authDatabase is where clients are looked up, by as many connections as authConnections.
const (
	authDatabase    = "postgres"
	authConnections = 2
)

// paths are where a pooler's files are.
type paths struct {
	// run is a folder in memory, certificate one with tls.crt and tls.key.
	run, certificate string
}

func (p paths) configuration() string { return filepath.Join(p.run, "pgbouncer.ini") }
func (p paths) authority() string     { return filepath.Join(p.run, "authority.crt") }
func (p paths) resolver() string      { return filepath.Join(p.run, "resolv.conf") }
func (p paths) access() string        { return filepath.Join(p.run, "hba.conf") }

// access is the text of hba.conf: who gets in over the network. The role of poolers has no password, and PgBouncer
// would let it in without one. PgBouncer's own database is for this process alone, which comes by the Unix socket.
var access = strings.Join([]string{
	"host all " + postgres.RolePooler + " all reject",
	"host " + consoleDatabase + " all all reject",
	"host all " + consoleUser + " all reject",
	"host " + authDatabase + " all all reject",
	"hostssl all all all scram-sha-256",
}, "\n") + "\n"

// lookupMargin is how much longer a look-up may take than a client waits for it.
const lookupMargin = 5 * time.Second

// resolver is the text of resolv.conf: only the pooler itself is asked. c-ares asks again after 1, 2, 4 … seconds.
func resolver(address string) string {
	return fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:7 ndots:1\n", address)
}

// listening is where a pooler listens: on which address (or everywhere) and port.
type listening struct {
	address string
	port    uint16
}

// loginLimit is how long a client may take to log in, at least: PgBouncer's own default.
const loginLimit = time.Minute

// holdLimit is for how long a client waits for a server: one of a database that may sleep waits for its start.
func holdLimit(settings protocol.PoolSettings) time.Duration {
	if settings.Operator != "" {
		return protocol.WakeLimit
	}
	return protocol.HoldLimit
}

// configuration is the text of pgbouncer.ini (PgBouncer 1.24 documentation, "config"). By the host PgBouncer looks up
// the address of a server each time that it connects (see names), and knows its certificate.
func configuration(settings protocol.PoolSettings, paths paths, listen listening) string {
	server := fmt.Sprintf("host=%s port=%d", settings.Server, naming.PortPostgreSQL)
	limit := holdLimit(settings)
	var text strings.Builder
	fmt.Fprintf(&text, "[databases]\n%s = %s pool_size=%d max_db_connections=%d\n* = %s\n\n[pgbouncer]\n",
		authDatabase, server, authConnections, authConnections, server)
	for _, s := range [][2]any{
		{"listen_addr", listen.address}, {"listen_port", listen.port}, {"unix_socket_dir", paths.run},
		// Who is the same user of the operating system commands PgBouncer, by its socket.
		{"admin_users", consoleUser},
		{"pool_mode", settings.Mode},
		{"max_client_conn", settings.MaxClients},
		// One connection at least: PgBouncer refuses clients of a pool whose last connection has failed until it has
		// connected again, which it then does without a client that asks.
		{"min_pool_size", 1},
		{"default_pool_size", settings.Connections}, {"max_db_connections", settings.Connections},
		{"auth_type", "hba"}, {"auth_hba_file", paths.access()},
		{"auth_user", postgres.RolePooler}, {"auth_dbname", authDatabase}, {"auth_query", postgres.VerifierQuery},
		// No client shows a certificate; but without a file of ours PgBouncer reads one that the image may not have.
		{"client_tls_sslmode", "require"}, {"client_tls_ca_file", paths.authority()},
		{"client_tls_cert_file", filepath.Join(paths.certificate, "tls.crt")},
		{"client_tls_key_file", filepath.Join(paths.certificate, "tls.key")},
		// By its name, too: the authority may be a company's, which has also issued certificates of others.
		{"server_tls_sslmode", "verify-full"}, {"server_tls_ca_file", paths.authority()},
		{"server_tls_cert_file", filepath.Join(paths.certificate, "tls.crt")},
		{"server_tls_key_file", filepath.Join(paths.certificate, "tls.key")},
		{"query_wait_timeout", limit.Seconds()},
		// It counts while a client waits to be known, and while there is no server yet.
		{"client_login_timeout", max(limit, loginLimit).Seconds()},
		// The look-up waits until an instance leads. What was looked up is true for a moment only.
		{"resolv_conf", paths.resolver()}, {"dns_max_ttl", 0}, {"dns_nxdomain_ttl", 0},
		{"server_connect_timeout", (limit + lookupMargin).Seconds()},
		{"server_login_retry", 0.1},
		// Who is silent for half a minute is given up, client or server. A server of a former term is left sooner.
		{"tcp_keepalive", 1}, {"tcp_keepidle", 10}, {"tcp_keepintvl", 5}, {"tcp_keepcnt", 3},
		{"tcp_user_timeout", 25000},
		// Drivers set these at the start of a session; PgBouncer knows no others than its own.
		{"ignore_startup_parameters", "extra_float_digits"},
		{"max_prepared_statements", 200},
		{"log_connections", 0}, {"log_disconnections", 0}, {"log_stats", 0},
	} {
		fmt.Fprintf(&text, "%s = %v\n", s[0], s[1])
	}
	return text.String()
}
