package restore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
)

// application is the name of our own sessions on a scratch server.
const application = "toban"

// readSettings are those of a session that only reads.
func readSettings() map[string]string {
	return map[string]string{"application_name": application, "default_transaction_read_only": "on"}
}

// connectScratch opens a session of a role on a scratch server's Unix socket. What somebody has set for the role or the
// database (ALTER DATABASE … SET role, search_path …) does not change what its statements do.
func connectScratch(
	ctx context.Context, s *postgres.Server, role, database string, settings map[string]string,
) (*pgx.Conn, error) {
	return s.Connection(database, role).Open(ctx, sql.SettingsAt(s.Programs.Major, role, settings))
}

// connectSuperuser opens a session of our own that writes.
func connectSuperuser(ctx context.Context, s *postgres.Server, database string) (*pgx.Conn, error) {
	return connectScratch(ctx, s, naming.RoleSuperuser, database, map[string]string{"application_name": application})
}

// optionsVariable gives a superuser's settings to one of PostgreSQL's own programs.
func optionsVariable(major int) string {
	return sql.OptionsVariable(sql.SettingsAt(major, naming.RoleSuperuser, nil))
}
