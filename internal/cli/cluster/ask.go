package cluster

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

// DatabasePostgres is the database that every server has.
const DatabasePostgres = "postgres"

// Question is a script of SQL whose statements each answer with a value in JSON. It begins with SET ROLE pg_monitor.
type Question struct {
	// Application is what the server calls the session.
	Application, Database, Script string
}

// Ask asks the server of a Pod by psql there, with the rights of the person who calls the command.
func (c *Cluster) Ask(ctx context.Context, pod string, q Question) ([]byte, error) {
	answer, err := c.askAt(ctx, pod, q, sql.Newest)
	if err != nil && strings.Contains(err.Error(), "unrecognized configuration parameter") {
		return c.askAt(ctx, pod, q, 0) // its server is older than some of the settings
	}
	return answer, err
}

// askAt asks a server of a major version.
func (c *Cluster) askAt(ctx context.Context, pod string, q Question, major int) ([]byte, error) {
	var answer, trouble bytes.Buffer
	err := Execution{
		Pod: pod, Command: q.command(major), In: strings.NewReader(q.Script), Out: &answer, Err: &trouble,
	}.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w: %s", pod, err, strings.TrimSpace(trouble.String()))
	}
	return answer.Bytes(), nil
}

// command is psql with the settings of every session of ours. It may read what pg_monitor may, and no more.
func (q Question) command(major int) []string {
	settings := sql.SettingsAt(major, naming.RoleSuperuser, map[string]string{
		"statement_timeout": askDeadline, "lock_timeout": askDeadline, "default_transaction_read_only": "on",
	})
	delete(settings, "role") // the script takes it, since the session has to begin as the superuser
	return []string{
		"env", "PGAPPNAME=" + q.Application, sql.OptionsVariable(settings),
		"psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--dbname", q.Database, "--file", "-",
	}
}

// AppDatabase is the application's, or the one that every server has.
func AppDatabase(db *v1.SampleDB) string {
	if !desired.Initialises(db) {
		return DatabasePostgres
	}
	return desired.AppDatabase(db)
}
