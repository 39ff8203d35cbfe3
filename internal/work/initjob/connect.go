package initjob

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/postgres/sql"
)

// connectTimeout bounds one host, so that one that swallows packets does not
// keep the others from being asked.
const connectTimeout = 3 * time.Second

// login is who connects to what. Without a password it is the certificate that counts.
type login struct{ database, role, password string }

// settings of every session of ours. A user's defaults in postgresql.parameters
// must not end the work in the middle, and a session that is cut off must not
// hold its locks for the two hours that TCP waits by itself.
var settings = map[string]string{
	"application_name":                    "toban init",
	"client_encoding":                     "UTF8",
	"default_transaction_read_only":       "off",
	"default_transaction_isolation":       "read committed",
	"standard_conforming_strings":         "on",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_session_timeout":                "0",
	"idle_in_transaction_session_timeout": "0",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
}

// connect finds the host that takes writes, as libpq does with
// target_session_attrs=read-write.
func (j *Job) connect(ctx context.Context, hosts []string, who login) (*pgx.Conn, error) {
	config, err := j.config(hosts, who)
	if err != nil {
		return nil, err
	}
	conn, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect as %s to database %q: %w", who.role, who.database, err)
	}
	return conn, nil
}

// undefinedObject is the SQLSTATE of a setting that the server does not know.
const undefinedObject = "42704"

// refusesSetting says that one of the hosts does not know a setting: an error has those of all hosts.
func refusesSetting(err error) bool {
	switch e := err.(type) { //nolint:errorlint // each of those that it has is looked at
	case *pgconn.PgError:
		return e.Code == undefinedObject
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), refusesSetting)
	case interface{ Unwrap() error }:
		return refusesSetting(e.Unwrap())
	}
	return false
}

// open opens a session. A server that does not know a setting refuses it before anything else is done: then it is older
// than those that are pinned only for newer ones.
func open(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	switch {
	case config.User != naming.RoleSuperuser:
	case refusesSetting(err):
		config.RuntimeParams = sql.Settings(config.User, settings)
		return pgx.ConnectConfig(ctx, config)
	case err == nil:
		if _, err = conn.Exec(ctx, sql.TriggersOn); err != nil {
			sql.HangUp(conn)
		}
	}
	return conn, err
}

// Superuser connects as the superuser to the host that takes writes.
func Superuser(ctx context.Context, hosts []string, port uint16, tls *tls.Config, database string) (*pgx.Conn, error) {
	j := &Job{Port: port, TLS: tls}
	return j.connect(ctx, hosts, login{database: database, role: naming.RoleSuperuser})
}

// SuperuserAt connects as the superuser to one host, whether it takes writes or not.
func SuperuserAt(ctx context.Context, host string, port uint16, tls *tls.Config, database string) (*pgx.Conn, error) {
	j := &Job{Port: port, TLS: tls}
	config, err := j.config([]string{host}, login{database: database, role: naming.RoleSuperuser})
	if err != nil {
		return nil, err
	}
	config.ValidateConnect = nil
	conn, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", host, err)
	}
	return conn, nil
}

// config are the settings of a session with the one of some hosts that takes writes.
func (j *Job) config(hosts []string, who login) (*pgx.ConnConfig, error) {
	parameters := maps.Clone(settings)
	if who.role == naming.RoleSuperuser {
		// Nothing that a user made or has set may stand in for what a superuser calls.
		parameters = sql.SettingsAt(sql.Newest, who.role, settings)
	}
	return sql.Connection{
		Hosts: hosts, Port: j.Port, TLS: func(host string) *tls.Config { return pki.ForHost(j.TLS, host) },
		Database: who.database, Role: who.role,
		// pgx normalises a password in another way than PostgreSQL does; one that has
		// been normalised already comes through unchanged.
		Password: scram.Prepare(who.password),
		Timeout:  connectTimeout, Valid: pgconn.ValidateConnectTargetSessionAttrsReadWrite,
	}.Config(parameters)
}

// remoteAddress is the address of the server that a connection has reached.
func remoteAddress(conn *pgx.Conn) string {
	address := conn.PgConn().Conn().RemoteAddr().String()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// Superuser opens a superuser's session in a database of the server that takes writes: for what other Jobs do that have
// the plan of this one.
func (j *Job) Superuser(ctx context.Context, database string) (*pgx.Conn, error) {
	return j.connect(ctx, j.Plan.Hosts, login{database: database, role: naming.RoleSuperuser})
}
