package work

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/archive/take"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// How a server is, in the order of preference.
const (
	hostStreams = iota // a standby that streams: the backup takes nothing from who writes
	hostPrimary
	hostUseless // a standby that does not stream is behind, nobody knows how far
)

// choose is the best of the hosts, or the primary among them.
func (t *taking) choose(ctx context.Context, primary bool) (string, error) {
	best, chosen := hostUseless, ""
	var words []string
	for _, host := range t.settings.Hosts {
		if why := t.damaged[host]; why != nil {
			words = append(words, fmt.Sprintf("%s could not be copied: %v", host, why))
			continue
		}
		kind, err := t.probe(ctx, host)
		if err != nil {
			words = append(words, err.Error())
			continue
		}
		if kind < best && (!primary || kind == hostPrimary) {
			best, chosen = kind, host
		}
	}
	if chosen == "" {
		return "", fmt.Errorf("no instance can be copied: %s",
			strings.Join(append(words, "no other streams or takes writes"), "; "))
	}
	return chosen, nil
}

// probe asks a host what it is.
func (t *taking) probe(ctx context.Context, host string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, pod.ConnectPatience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, t.connection(host))
	if err != nil {
		return hostUseless, fmt.Errorf("connect to %s: %w", host, err)
	}
	defer conn.Close(ctx)
	const query = "select pg_is_in_recovery(), exists (select from pg_catalog.pg_stat_wal_receiver " +
		"where status = 'streaming')"
	result := conn.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return hostUseless, fmt.Errorf("ask %s what it is: %w", host, result.Err)
	}
	switch row := result.Rows[0]; { // a query without from or where has one row
	case string(row[0]) == "f":
		return hostPrimary, nil
	case string(row[1]) == "t":
		return hostStreams, nil
	}
	return hostUseless, nil
}

// wake has the primary write something that is no idle WAL, so that what lies before it is archived soon: a backup of a
// standby may end where nobody writes.
func (t *taking) wake(ctx context.Context) error {
	_, err := t.askPrimary(ctx, "select pg_catalog.pg_logical_emit_message(true, 'toban backup', '')")
	return err
}

// clock is the time of the primary, whose clock says when transactions are committed.
func (t *taking) clock(ctx context.Context) (time.Time, error) {
	text, err := t.askPrimary(ctx, "select "+take.ServerClock)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, text)
}

// written says whether the primary has WAL up to an LSN, as far as it can be asked.
func (t *taking) written(ctx context.Context, lsn wal.LSN) bool {
	text, err := t.askPrimary(ctx, "select pg_catalog.pg_current_wal_flush_lsn()")
	if err != nil {
		return false
	}
	end, err := wal.ParseLSN(text)
	return err == nil && end >= lsn
}

// askPrimary is the answer of the primary to a question.
func (t *taking) askPrimary(ctx context.Context, question string) (string, error) {
	host, err := t.choose(ctx, true)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pod.ConnectPatience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, t.connection(host))
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", host, err)
	}
	defer conn.Close(ctx)
	result := conn.ExecParams(ctx, question, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return "", fmt.Errorf("ask %s: %w", host, result.Err)
	}
	return string(result.Rows[0][0]), nil // a query without from or where has one row
}

// connection are the settings of a connection with a host.
func (t *taking) connection(host string) *pgconn.Config {
	config, err := sql.Connection{
		Hosts: []string{host}, Port: t.port, Database: "postgres", Role: naming.RoleBackup,
		Timeout: pod.ConnectPatience,
		TLS:     func(host string) *tls.Config { return pki.ForHost(t.tls, host) },
	}.Config(sql.Settings(naming.RoleBackup, map[string]string{
		"application_name":    "toban backup",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	}))
	if err != nil {
		panic(err) // its text is right
	}
	return &config.Config
}
