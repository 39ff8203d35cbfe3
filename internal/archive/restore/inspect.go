package restore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
)

// InspectOptions say what is looked through.
type InspectOptions struct {
	// Backup is the id of the backup that Verify has restored, Folder the one that it has restored to. Run is one with
	// a short name, for the Unix socket.
	Backup, Folder, Run string
	Programs            postgres.Programs
	// Parameters are those of VerifyOptions.
	Parameters map[string]string
	Assertions []Assertion
	Workers    int
	// Before, if set, is called when the server takes connections and nothing has been looked through, with a way to a
	// superuser's sessions.
	Before func(context.Context, Connect) error
	// Log gets what the server says.
	Log io.Writer
}

// Connect opens a superuser's session in a database.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

type inspecting struct {
	InspectOptions
	scratch
	reader string // the role that asks the assertions
	report Report
}

// assertionLimit is how long one assertion may take.
const assertionLimit = time.Hour

// Inspect starts the server of a backup that Verify has restored, lets pg_amcheck look through it and asks the user's
// questions. It needs no secret, and the process that calls it should have none: the questions can run code that is in
// the database. They are asked by a role that can only read, so that who wrote that code gains nothing by it. The
// report has these steps alone, and the error is as that of Verify.
func Inspect(ctx context.Context, o InspectOptions) (Report, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	i := &inspecting{InspectOptions: o, report: Report{Backup: o.Backup}, scratch: newScratch(o.Programs, o.Folder,
		o.Run, o.Parameters, o.Log)}
	defer i.kill(ctx)
	begin := time.Now()
	if err := i.restart(ctx); err != nil {
		return i.report, fmt.Errorf("verify backup %s: start the restored server again: %w", o.Backup, err)
	}
	i.report.Start = time.Since(begin)
	ctx, cancel := WhileRunning(ctx, i.process)
	defer cancel()
	if o.Before != nil {
		if err := o.Before(ctx, func(ctx context.Context, database string) (*pgx.Conn, error) {
			return connectSuperuser(ctx, i.server, database)
		}); err != nil {
			return i.report, err
		}
	}
	err := i.report.run(ctx, verifyStep{StepAmcheck, i.amcheck}, verifyStep{StepAsk, i.ask})
	return i.report, err
}

// amcheck looks through all tables and B-tree indexes of all databases. An image without the extension (Debian:
// postgresql-contrib) does without. Functions in an index are called as the table's owner, not as superuser
// (PostgreSQL since CVE-2022-1552).
func (i *inspecting) amcheck(ctx context.Context) (skipped string, err error) {
	program := filepath.Join(i.Programs.Dir, "pg_amcheck")
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return "the image has no pg_amcheck", nil
	}
	there, _, err := i.query(ctx, naming.RoleSuperuser, "postgres",
		"select count(*) from pg_available_extensions where name = 'amcheck'", readSettings())
	if err != nil {
		return "", err
	}
	if there == "0" {
		return "the image has no extension amcheck", nil
	}
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--all", "--install-missing", "--no-password", "--host", i.Run,
		"--port", strconv.Itoa(scratchPort), "--username", naming.RoleSuperuser, "--jobs", strconv.Itoa(i.Workers))
	cmd.Env = append(os.Environ(), optionsVariable(i.Programs.Major))
	cmd.Stdout, cmd.Stderr = &words, &words // what is corrupt is on the former
	if err := postgres.Children.Run(cmd); err != nil {
		lines := strings.Split(strings.TrimSpace(words.String()), "\n")
		return "", fmt.Errorf("pg_amcheck: %w: %s", err, strings.Join(lines[:min(len(lines), 10)], "; "))
	}
	return "", nil
}

// ask asks the user's questions, all of them, whatever one says.
func (i *inspecting) ask(ctx context.Context) (skipped string, err error) {
	if len(i.Assertions) == 0 {
		return "there are no questions", nil
	}
	if err := i.createReader(ctx); err != nil {
		return "", err
	}
	var wrong []string
	for _, a := range i.Assertions {
		answer := i.answer(ctx, a)
		i.report.Answers = append(i.report.Answers, answer)
		if answer.Problem != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", a.Name, answer.Problem))
		}
	}
	if len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, "; "))
	}
	return "", nil
}

// createReader makes the role that asks. It reads every table, as row level security would not let it without
// BYPASSRLS, and can do nothing else. Its name is new each time: nobody can have made it before, with more rights.
func (i *inspecting) createReader(ctx context.Context) error {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails
	i.reader = naming.RoleVerify + "_" + hex.EncodeToString(unique[:])
	return i.administer(ctx, "CREATE ROLE "+i.reader+
		" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS INHERIT IN ROLE pg_read_all_data")
}

// admit lets the reader into a database, whoever else may connect there.
func (i *inspecting) admit(ctx context.Context, database string) error {
	name := sql.Quote(database)
	if err := i.administer(ctx, "GRANT CONNECT ON DATABASE "+name+" TO "+i.reader); err != nil {
		return err
	}
	return i.administer(ctx, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
}

func (i *inspecting) administer(ctx context.Context, statement string) error {
	conn, err := connectSuperuser(ctx, i.server, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return err
}

// readerSettings are those of the sessions that ask. The path is what a question that names no schema needs. It
// is no defence: who may create in public can put a function there that a question calls. What defends is that
// the role can do nothing.
func readerSettings() map[string]string {
	all := readSettings()
	all["search_path"] = "pg_catalog, public, pg_temp"
	all["statement_timeout"] = strconv.FormatInt(assertionLimit.Milliseconds(), 10)
	return all
}

func (i *inspecting) answer(ctx context.Context, a Assertion) Answer {
	begin := time.Now()
	// What runs in the server may ignore its own time limit.
	ctx, cancel := context.WithTimeout(ctx, assertionLimit+time.Minute)
	defer cancel()
	err := i.admit(ctx, a.Database)
	answer := Answer{Name: a.Name}
	if err == nil {
		answer.Got, answer.Rows, err = i.query(ctx, i.reader, a.Database, a.SQL, readerSettings())
	}
	answer.Took = time.Since(begin)
	switch {
	case err != nil:
		answer.Problem, answer.Unanswered = err.Error(), !answered(err)
	case a.Want != nil && answer.Rows == 0:
		answer.Problem = fmt.Sprintf("it gives no row, expected %q", *a.Want)
	case a.Want != nil && answer.Got != *a.Want:
		answer.Problem = fmt.Sprintf("it gives %q, expected %q", answer.Got, *a.Want)
	}
	return answer
}

// answered says that an error is PostgreSQL's own about the question, and not about the connection, about resources, an
// operator's intervention or the system (classes 08, 53, 57 and 58 of its error codes).
func answered(err error) bool {
	code := sql.Code(err)
	return len(code) == 5 && !sql.InClass(code, "08", "53", "57", "58")
}

// query gives the first value of the first row as text ("" for NULL), and the number of rows.
func (i *inspecting) query(
	ctx context.Context, role, database, sql string, settings map[string]string,
) (first string, rows int, err error) {
	conn, err := connectScratch(ctx, i.server, role, database, settings)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", 0, err
	}
	for _, r := range results { // of several statements the last that has rows
		if len(r.Rows) > 0 && len(r.Rows[0]) > 0 {
			first, rows = string(r.Rows[0][0]), len(r.Rows)
		}
	}
	return first, rows, nil
}
