package initjob

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/postgres/sql"
)

// errBusy is waited out: the other Job ends, or its session does.
var errBusy = errors.New("another init Job is at work")

// refusal is an error that trying again does not mend, in words for people.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// failure is an error with the step in which it came up.
type failure struct {
	step string
	err  error
	// secretMissing says that the step is a source in a Secret that is not there.
	secretMissing bool
}

func (f *failure) Error() string { return f.step + ": " + explain(f.err) }
func (f *failure) Unwrap() error { return f.err }

// at names the step of an error.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{step: step, err: err}
}

// Report is the Result of Run's error, for the termination message.
func Report(err error) Result {
	if err == nil {
		return Result{Done: true}
	}
	var f *failure
	if errors.As(err, &f) {
		return Result{Step: f.step, Message: explain(f.err), SecretMissing: f.secretMissing}
	}
	return Result{Message: explain(err)}
}

// unquoted is PostgreSQL's error about a script of which nothing may be quoted.
type unquoted struct{ *pgconn.PgError }

func (u unquoted) Error() string {
	where := ""
	if u.Position > 0 {
		where = fmt.Sprintf(", at character %d of the source", u.Position)
	}
	return fmt.Sprintf("%s (SQLSTATE %s)%s; PostgreSQL's message is not shown, because it may quote what is in "+
		"the Secret", u.Severity, u.Code, where)
}

func (u unquoted) Unwrap() error { return u.PgError }

// failed names where a script failed, and hides what PostgreSQL quotes of one that is a Secret.
func (s script) failed(where string, err error) error {
	if own := sql.Error(err); s.secret && own != nil && !isConnect(err) {
		err = unquoted{own}
	}
	return at(where, err)
}

// explain gives PostgreSQL's own words where the error is its.
func explain(err error) string {
	var secret unquoted
	if isConnect(err) || errors.As(err, &secret) {
		return err.Error()
	}
	return sql.Explain(err, sql.ShownAll)
}

// isConnect says whether the error is about a connection that did not come
// about; its own text tells which hosts were tried.
func isConnect(err error) bool {
	var c *pgconn.ConnectError
	return errors.As(err, &c)
}

// transient says whether the same work may succeed a moment later: everything
// but our own refusals and PostgreSQL's errors about what was asked.
func transient(err error) bool {
	var no refusal
	if errors.As(err, &no) {
		return false
	}
	if sql.Error(err) == nil { // the network, or a server that is not there yet
		return true
	}
	code := sql.Code(err)
	switch code {
	case "25006", // read_only_sql_transaction: no primary any more
		"40001", "40P01", // serialization_failure, deadlock_detected
		"53300",                   // too_many_connections
		"55006",                   // object_in_use: template0 is being copied
		"57P01", "57P02", "57P03": // the server stops or starts
		return true
	}
	return sql.InClass(code, "08") // connection exceptions
}
