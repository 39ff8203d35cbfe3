package initjob

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/postgres/sql"
)

// record is where the sources that have been run are written down, in the
// database itself and in the transaction of each source: both are
// there or neither. The owner can add to it, which is how its transaction does
// so, but can't change or remove anything. It stays as a trace of the beginning.
const record = `
CREATE SCHEMA IF NOT EXISTS toban;
CREATE TABLE IF NOT EXISTS toban.init_step (
	source text PRIMARY KEY,
	digest text NOT NULL,
	done_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
COMMENT ON SCHEMA toban IS 'Kept by the Toban operator';
COMMENT ON TABLE toban.init_step IS 'The sources of spec.init.sql that have been run, each once';
`

// prepareDatabase makes in the database what takes a superuser.
func (j *Job) prepareDatabase(ctx context.Context, primary []string) error {
	super, err := j.connect(ctx, primary, login{database: j.Plan.Database, role: naming.RoleSuperuser})
	if err != nil {
		return at("database "+j.Plan.Database, err)
	}
	defer sql.HangUp(super)
	if len(j.Plan.SQL) > 0 {
		if err := makeRecord(ctx, super, j.Plan.Owner); err != nil {
			return at("database "+j.Plan.Database, err)
		}
		j.passed("record")
	}
	for _, name := range j.Plan.Extensions {
		if _, err := database.EnsureExtension(ctx, super, name); err != nil {
			return at("extension "+name, err)
		}
		j.passed("extension " + name)
	}
	return nil
}

// makeRecord runs in one transaction, as statements sent in one message do.
func makeRecord(ctx context.Context, super *pgx.Conn, owner string) error {
	grants := fmt.Sprintf("GRANT USAGE ON SCHEMA toban TO %[1]s; GRANT SELECT, INSERT ON toban.init_step TO %[1]s;",
		sql.Quote(owner))
	return sql.Do(ctx, super, "make the table toban.init_step", record+grants, pgx.QueryExecModeSimpleProtocol)
}
