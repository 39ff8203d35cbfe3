package outside

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/naming"
)

// Access is how an application outside of the cluster connects: the credentials
// of the Secret NAME-app and the address of a Service.
type Access struct {
	Host, User, Password, Database string
	Port                           uint16
	// Within is how long it may take to connect, where it is not 0: a second.
	Within time.Duration
	// name is the Service's in the cluster's DNS, roots the SampleDB's authority; without it there is no TLS, as for a
	// server that is none of a SampleDB.
	name  string
	roots *x509.CertPool
}

// Access reads the Secret of a SampleDB and the address of one of its Services.
func (n Namespace) Access(ctx context.Context, db, service string) (Access, error) {
	var secret corev1.Secret
	if err := n.Get(ctx, "secret/"+naming.AppSecret(db), &secret); err != nil {
		return Access{}, err
	}
	var s corev1.Service
	if err := n.Get(ctx, "service/"+service, &s); err != nil {
		return Access{}, err
	}
	return NewAccess(secret, s)
}

// NewAccess is the way through a Service with what the Secret NAME-app says.
func NewAccess(secret corev1.Secret, service corev1.Service) (Access, error) {
	port, err := strconv.ParseUint(string(secret.Data[naming.KeyPort]), 10, 16)
	if err != nil {
		return Access{}, fmt.Errorf("the Secret's port: %w", err)
	}
	a := Access{
		Host: service.Spec.ClusterIP, Port: uint16(port),
		name: naming.ServiceHost(service.Name, service.Namespace), roots: x509.NewCertPool(),
		User:     string(secret.Data[naming.KeyUsername]),
		Password: string(secret.Data[naming.KeyPassword]),
		Database: string(secret.Data[naming.KeyDatabase]),
	}
	if !a.roots.AppendCertsFromPEM(secret.Data[naming.KeyCA]) {
		return Access{}, errors.New("the Secret has no certificate of the authority")
	}
	return a, nil
}

// At is the same access at another address, where the server's certificate has to
// have that name.
func (a Access) At(host, name string) Access {
	a.Host, a.name = host, name
	return a
}

// Settings are pgx's for a session. The server must have a certificate of the
// SampleDB's authority for the Service's name, as for an application in the
// cluster with sslmode=verify-full.
func (a Access) Settings() (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("make a connection's settings: %w", err)
	}
	config.Host, config.Port = a.Host, a.Port
	config.User, config.Password, config.Database = a.User, a.Password, a.Database
	if a.roots != nil {
		config.TLSConfig = &tls.Config{RootCAs: a.roots, ServerName: a.name, MinVersion: tls.VersionTLS13}
	}
	config.ConnectTimeout = cmp.Or(a.Within, time.Second)
	return config, nil
}

// Patient is the same access for what must succeed at once, also on a busy machine. It is not for who tries again: then
// an address that answers no more costs the whole time.
func (a Access) Patient() Access {
	a.Within = time.Minute
	return a
}

// Connect opens a session.
func (a Access) Connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := a.Settings()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a.Host, err)
	}
	return conn, nil
}

// Environment is the access for PostgreSQL's own programs.
func (a Access) Environment() []string {
	return []string{
		"PGHOST=" + a.Host, "PGPORT=" + strconv.Itoa(int(a.Port)), "PGUSER=" + a.User, "PGPASSWORD=" + a.Password,
		"PGDATABASE=" + a.Database, "PGSSLMODE=require", "PGCONNECT_TIMEOUT=3",
	}
}

// Ask runs a query and returns its one value as text.
func (a Access) Ask(ctx context.Context, query string, args ...any) (string, error) {
	conn, err := a.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var value any
	if err := conn.QueryRow(ctx, query, args...).Scan(&value); err != nil {
		return "", fmt.Errorf("%s: %w", query, err)
	}
	return fmt.Sprint(value), nil
}

// Do runs statements.
func (a Access) Do(ctx context.Context, statements string) error {
	conn, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("%s: %w", statements, err)
	}
	return nil
}
