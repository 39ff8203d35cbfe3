package initjob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// inTransaction is the state that PostgreSQL reports while a transaction is open.
const inTransaction = 'T'

// runScript runs a source exactly once. It logs in as the owner with the owner's
// password: a superuser's session that had SET ROLE could be made
// a superuser's again by the script.
func (j *Job) runScript(ctx context.Context, primary []string, s script) error {
	conn, err := j.connect(ctx, primary, login{database: j.Plan.Database, role: j.Plan.Owner, password: j.Password})
	if err != nil {
		return at(s.name, err)
	}
	defer sql.HangUp(conn) // without a commit, the server rolls back
	fresh, err := claim(ctx, conn, s)
	if err != nil || !fresh {
		return s.failed(s.name, err)
	}
	if err := execute(ctx, conn, s); err != nil {
		return err
	}
	j.passed("in " + s.name)
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		return s.failed(s.name, err)
	}
	j.Log.Info("ran SQL", "source", s.name, "statements", len(s.statements))
	j.passed(s.name)
	return nil
}

// unlogged are the settings with which a session's SQL is written down nowhere, and no error that quotes it. What
// sessions do is seen: an application may begin one of the owner's meanwhile, and keep it for long.
var unlogged = append(slices.DeleteFunc(slices.Clone(sql.Unwritten), func(setting [2]string) bool {
	return setting[0] == "track_activities"
}), [2]string{"log_min_messages", "panic"})

// runUnlogged runs a source that is a Secret: the owner's sessions log nothing meanwhile. An attempt that is killed in
// between leaves them so until the next one.
func (j *Job) runUnlogged(ctx context.Context, super *pgx.Conn, primary []string, s script) error {
	sessions := fmt.Sprintf("ALTER ROLE %s IN DATABASE %s ", sql.Quote(j.Plan.Owner), sql.Quote(j.Plan.Database))
	var hide, show strings.Builder
	for _, setting := range unlogged {
		fmt.Fprintf(&hide, "%sSET %s = '%s';", sessions, setting[0], setting[1])
		fmt.Fprintf(&show, "%sRESET %s;", sessions, setting[0])
	}
	if _, err := super.Exec(ctx, hide.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return at(s.name, fmt.Errorf("keep it out of the server's log: %w", err))
	}
	failed := j.runScript(ctx, primary, s)
	if _, err := super.Exec(ctx, show.String(), pgx.QueryExecModeSimpleProtocol); err != nil && failed == nil {
		return at(s.name, fmt.Errorf("let the server log as before: %w", err))
	}
	return failed
}

// claim opens the transaction and writes the source down in it, before the
// script runs: of two that try the same, one waits here for the other. It
// returns false where the source has been run.
func claim(ctx context.Context, conn *pgx.Conn, s script) (bool, error) {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	tag, err := conn.Exec(ctx,
		"INSERT INTO toban.init_step (source, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING", s.name, s.digest)
	if err != nil {
		return false, fmt.Errorf("write it down in toban.init_step: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return true, nil
	}
	digest, err := sql.Value[string](ctx, conn, "read toban.init_step",
		"SELECT digest FROM toban.init_step WHERE source = $1",
		s.name)
	if err != nil {
		return false, err
	}
	if digest != s.digest {
		return false, refuse("this source has been run already, and its SQL has changed since then: " +
			"put it back as it was, and what is to be added into a source of its own")
	}
	return false, nil
}

// execute sends the script as one message, which PostgreSQL splits itself: a
// mistake in its grammar is found before its first statement runs.
func execute(ctx context.Context, conn *pgx.Conn, s script) error {
	before, err := transaction(ctx, conn)
	if err != nil {
		return at(s.name, err)
	}
	done := 0
	results := conn.PgConn().Exec(ctx, s.text)
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err == nil {
			done++
		}
	}
	if err := results.Close(); err != nil {
		return s.failed(s.where(err, done), err)
	}
	after, err := transaction(ctx, conn)
	if err == nil && (after != before || conn.PgConn().TxStatus() != inTransaction) {
		err = refuse("the SQL ended its own transaction: each source runs as a whole in one")
	}
	return at(s.name, err)
}

// transaction is the number of the open transaction.
func transaction(ctx context.Context, conn *pgx.Conn) (string, error) {
	return sql.Value[string](ctx, conn, "ask for the transaction",
		"SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text")
}

// where is the source with the line: PostgreSQL's position where the error has
// one, otherwise the start of the statement after those that are done.
func (s script) where(err error, done int) string {
	switch own := sql.Error(err); {
	case own != nil && own.Position > 0:
		return line(s.name, lineAt(s.text, int(own.Position)))
	case done < len(s.statements):
		return line(s.name, s.statements[done].line)
	}
	return s.name
}
