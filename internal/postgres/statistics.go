package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// RoleMetrics asks the users' own queries for metrics. It can log in only through the Unix socket, by the agent.
const RoleMetrics = "toban_metrics"

// Roles that RoleMetrics may be a member of (PostgreSQL 17 documentation, 21.5).
const (
	ReadsStatistics = "pg_monitor"
	ReadsAllData    = "pg_read_all_data"
)

// ConnectStatistics opens a session that reads statistics in the database postgres with the rights of pg_monitor, and
// whose statements end after two seconds. It finds room where clients have taken all connections but those that are
// reserved for superusers.
func (s *Server) ConnectStatistics(ctx context.Context) (*pgx.Conn, error) {
	opened, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.RuntimeParams = sql.SettingsAt(s.Programs.Major, config.User, map[string]string{
			"application_name": "toban metrics", "statement_timeout": "2s", "lock_timeout": "1s",
			"default_transaction_read_only": "on", "max_parallel_workers_per_gather": "0",
		})
	})
	if err != nil {
		return nil, err
	}
	// It is no setting of the startup packet, where nothing orders it after session_authorization, which resets it.
	if _, err := opened.conn.Exec(ctx, "set role "+ReadsStatistics); err != nil {
		opened.Close()
		return nil, fmt.Errorf("take the role %s: %w", ReadsStatistics, err)
	}
	return opened.conn, nil
}

// ConnectMetrics opens a session of RoleMetrics for a user's own queries, whose statements end after five seconds.
// Names without a schema are those of PostgreSQL first, and then those of the schema public.
func (s *Server) ConnectMetrics(ctx context.Context, database string) (*pgx.Conn, error) {
	opened, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.User, config.Database = RoleMetrics, database
		config.RuntimeParams = sql.SettingsAt(s.Programs.Major, RoleMetrics, map[string]string{
			"application_name": "toban metrics", "statement_timeout": "5s", "lock_timeout": "1s",
			"default_transaction_read_only": "on", "max_parallel_workers_per_gather": "0",
			"search_path": "pg_catalog, public",
		})
	})
	if err != nil {
		return nil, err
	}
	return opened.conn, nil
}

// EnsureMetricsRole makes RoleMetrics a member of reads, which is ReadsStatistics or ReadsAllData, and of nothing else
// of the two. The server must be a primary. Where all is as it should be it writes nothing.
func (s *Server) EnsureMetricsRole(ctx context.Context, reads string) error {
	others := map[string]string{ReadsStatistics: ReadsAllData, ReadsAllData: ReadsStatistics}
	other, known := others[reads]
	if !known {
		return errors.New("the role " + RoleMetrics + " can't be a member of " + reads)
	}
	opened, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	statement := fmt.Sprintf(`do $$ begin
		if not exists (select from pg_roles where rolname = '%[1]s') then
			create role %[1]s login;
		end if;
		if exists (select from pg_auth_members where member = '%[1]s'::regrole and roleid = '%[3]s'::regrole) then
			revoke %[3]s from %[1]s;
		end if;
		if not exists (select from pg_auth_members where member = '%[1]s'::regrole and roleid = '%[2]s'::regrole) then
			grant %[2]s to %[1]s;
		end if;
		if exists (select from pg_roles where rolname = '%[1]s' and (rolsuper or rolcreaterole or rolcreatedb
			or rolreplication or rolbypassrls or not rolcanlogin)) then
			alter role %[1]s nosuperuser nocreaterole nocreatedb noreplication nobypassrls login;
		end if;
	end $$`, RoleMetrics, reads, other)
	if err := withoutMembers(ctx, opened.conn); err != nil {
		return err
	}
	if _, err := opened.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("make the role %s: %w", RoleMetrics, err)
	}
	return withoutTriggers(ctx, opened.conn)
}
