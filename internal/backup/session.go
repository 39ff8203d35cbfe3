package backup

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
)

// ownSettings are the parameters of our own sessions on a scratch server, as superuser. A session's parameters go before those that
// somebody has set for a role or a database (ALTER DATABASE … SET role, search_path …): these must not change what our statements do.
var ownSettings = map[string]string{
	"application_name": "toban", "role": "none", "search_path": "pg_catalog", "client_encoding": "UTF8", "standard_conforming_strings": "on",
	"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "local_preload_libraries": "",
	"default_transaction_read_only": "off",
}

// readSettings are those of a session that only reads.
func readSettings() map[string]string {
	all := maps.Clone(ownSettings)
	all["default_transaction_read_only"] = "on"
	return all
}

// connectScratch opens a session of a role on a scratch server's Unix socket.
func connectScratch(ctx context.Context, s *postgres.Server, role, database string, settings map[string]string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname='%s' sslmode=disable connect_timeout=3",
		s.Run, s.Port, role, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database)))
	if err != nil {
		return nil, fmt.Errorf("make connection settings: %w", err)
	}
	maps.Copy(config.RuntimeParams, settings)
	return pgx.ConnectConfig(ctx, config)
}

// connectSuperuser opens a session of our own that writes.
func connectSuperuser(ctx context.Context, s *postgres.Server, database string) (*pgx.Conn, error) {
	return connectScratch(ctx, s, naming.RoleSuperuser, database, ownSettings)
}

// optionsVariable gives ownSettings to one of PostgreSQL's own programs (libpq's PGOPTIONS).
func optionsVariable() string {
	var options []string
	for name, value := range ownSettings {
		options = append(options, "-c "+name+"="+value)
	}
	return "PGOPTIONS=" + strings.Join(options, " ")
}
