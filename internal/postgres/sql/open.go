package sql

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Connection is which server a session is with, and as whom.
type Connection struct {
	// Hosts are tried one after the other. The path of a folder is that of a Unix socket.
	Hosts []string
	Port  uint16
	// TLS are the settings for a host, nil for a session without.
	TLS func(host string) *tls.Config
	// Database and Role are where and as whom. Without a password it is the certificate, or the socket, that counts.
	Database, Role, Password string
	// Timeout bounds each host's answer, so that one that swallows packets does not keep the others from being asked.
	Timeout time.Duration
	// Valid refuses a server by its state, nil for none.
	Valid pgconn.ValidateConnectFunc
}

// plain names every setting that pgx would take from a PG… variable, some of which it refuses before they can be
// replaced (pgconn.ParseConfig of pgx 5.12). What Connection says replaces them.
const plain = "host=localhost port=5432 user=postgres password='' dbname=postgres connect_timeout=0 sslmode=disable " +
	"sslcertmode=allow sslnegotiation=postgres sslkey='' sslcert='' sslrootcert='' sslsni=1 passfile='' " +
	"target_session_attrs=any channel_binding=prefer require_auth='' min_protocol_version=3.0 max_protocol_version=3.0"

// Config are the settings of a connection. The parameters are all that the server is told.
func (c Connection) Config(parameters map[string]string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(plain)
	if err != nil {
		return nil, fmt.Errorf("make a connection's settings: %w", err)
	}
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = c.Hosts[0], c.Port, c.tls(c.Hosts[0]), nil
	for _, host := range c.Hosts[1:] {
		config.Fallbacks = append(config.Fallbacks,
			&pgconn.FallbackConfig{Host: host, Port: c.Port, TLSConfig: c.tls(host)})
	}
	config.Database, config.User, config.Password = c.Database, c.Role, c.Password
	config.ConnectTimeout, config.ValidateConnect = c.Timeout, c.Valid
	config.RuntimeParams = parameters
	return config, nil
}

func (c Connection) tls(host string) *tls.Config {
	if c.TLS == nil {
		return nil
	}
	return c.TLS(host)
}

// Open opens a session with parameters.
func (c Connection) Open(ctx context.Context, parameters map[string]string) (*pgx.Conn, error) {
	config, err := c.Config(parameters)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// HangUp ends a session, nil for none, within three seconds: nothing is lost with it.
func HangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
