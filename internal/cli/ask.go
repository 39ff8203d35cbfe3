package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres/sql"
)

// askDeadline is how long the server may take for one statement of a question.
const askDeadline = "10s"

// databasePostgres is the database that every server has.
const databasePostgres = "postgres"

// question is a script of SQL whose statements each answer with a value in JSON. It begins with SET ROLE pg_monitor.
type question struct {
	// application is what the server calls the session.
	application, database, script string
}

// ask asks the server of a Pod by psql there, with the rights of the person who calls the command.
func (c *cluster) ask(ctx context.Context, pod string, q question) ([]byte, error) {
	answer, err := c.askAt(ctx, pod, q, sql.Newest)
	if err != nil && strings.Contains(err.Error(), "unrecognized configuration parameter") {
		return c.askAt(ctx, pod, q, 0) // its server is older than some of the settings
	}
	return answer, err
}

// askAt asks a server of a major version.
func (c *cluster) askAt(ctx context.Context, pod string, q question, major int) ([]byte, error) {
	var answer, trouble bytes.Buffer
	err := execution{
		pod: pod, command: q.command(major), in: strings.NewReader(q.script), out: &answer, err: &trouble,
	}.run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w: %s", pod, err, strings.TrimSpace(trouble.String()))
	}
	return answer.Bytes(), nil
}

// command is psql with the settings of every session of ours. It may read what pg_monitor may, and no more.
func (q question) command(major int) []string {
	settings := sql.SettingsAt(major, naming.RoleSuperuser, map[string]string{
		"statement_timeout": askDeadline, "lock_timeout": askDeadline, "default_transaction_read_only": "on",
	})
	delete(settings, "role") // the script takes it, since the session has to begin as the superuser
	return []string{
		"env", "PGAPPNAME=" + q.application, sql.OptionsVariable(settings),
		"psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--dbname", q.database, "--file", "-",
	}
}

// appDatabase is the application's, or the one that every server has.
func appDatabase(db *v1.SampleDB) string {
	if !desired.Initialises(db) {
		return databasePostgres
	}
	return desired.AppDatabase(db)
}
