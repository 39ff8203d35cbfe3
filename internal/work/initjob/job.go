package initjob

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// retry is how long to wait before the next try while no instance takes writes yet.
const retry = 100 * time.Millisecond

// Job does what a plan says. Every step looks first whether it has been done, so
// the work can end at any point and begin again from the start.
type Job struct {
	Plan Plan
	// Port is where the servers listen, TLS how to know them and to be known by them.
	Port uint16
	TLS  *tls.Config
	// Password is the owner's.
	Password string
	// Patience is how long to go on while no instance takes writes.
	Patience time.Duration
	Log      *slog.Logger
	// Unlink, where it is set, removes what a backup may have brought along of links to other servers. It is given how
	// to open a superuser's session in a database.
	Unlink func(ctx context.Context, connect Connect) error
	// At, where it is set, is told every point that the work has passed. Tests end
	// the process there.
	At func(point string)
}

// Connect opens a superuser's session in a database.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

// Run does the plan. It waits for a primary, and starts again where the
// connection to it is lost. Its error names the step that failed; see Report.
func (j *Job) Run(ctx context.Context) error {
	scripts, err := readScripts(j.Plan.SQL)
	if err != nil {
		return err
	}
	if err := checkPlan(j.Plan, j.Password); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, j.Patience)
	defer cancel()
	var last error
	for {
		err := j.attempt(patient, scripts)
		if err == nil || !transient(err) {
			return err
		}
		if patient.Err() != nil {
			return gaveUp(ctx, j.Patience, last, err)
		}
		if last == nil || last.Error() != err.Error() {
			j.Log.Info("not yet, trying again", "reason", err.Error())
		}
		last = err
		if !pause.For(patient, retry) {
			return gaveUp(ctx, j.Patience, last, err)
		}
	}
}

// gaveUp prefers the last error that was not merely the end of the time.
func gaveUp(ctx context.Context, patience time.Duration, last, now error) error {
	if last == nil {
		last = now
	}
	if ctx.Err() != nil {
		return at("stopped", fmt.Errorf("asked to stop before the work was done: %w", last))
	}
	return at("connect to the primary", fmt.Errorf("no instance took writes for %s: %w", patience, last))
}

// attempt does all steps over one primary, from the first that is not done yet.
func (j *Job) attempt(ctx context.Context, scripts []script) error {
	super, err := j.connect(ctx, j.Plan.Hosts, login{database: "postgres", role: naming.RoleSuperuser})
	if err != nil {
		return at("connect to the primary", err)
	}
	defer sql.HangUp(super)
	// Later connections go to the server that this one found: another one may be a
	// standby that does not have the new role yet.
	primary := []string{remoteAddress(super)}

	if err := lock(ctx, super); err != nil {
		return at("connect to the primary", err)
	}
	if err := j.unlink(ctx, primary); err != nil {
		return at("remove the links of a former blue/green upgrade", err)
	}
	if err := j.makeRoleAndDatabase(ctx, super); err != nil {
		return err
	}
	if err := j.prepareDatabase(ctx, primary); err != nil {
		return err
	}
	for _, s := range scripts {
		run := j.runScript
		if s.secret {
			run = func(ctx context.Context, primary []string, s script) error {
				return j.runUnlogged(ctx, super, primary, s)
			}
		}
		if err := run(ctx, primary, s); err != nil {
			return err
		}
	}
	return nil
}

// unlink is done before anything else: what is left of a link may refuse changes of the schema.
func (j *Job) unlink(ctx context.Context, primary []string) error {
	if j.Unlink == nil {
		return nil
	}
	return j.Unlink(ctx, func(ctx context.Context, database string) (*pgx.Conn, error) {
		return j.connect(ctx, primary, login{database: database, role: naming.RoleSuperuser})
	})
}

// lock keeps a second init Job out while this session lasts. One can be there
// when the first one's node is lost; keepalives then end its session.
func lock(ctx context.Context, conn *pgx.Conn) error {
	const key = 0x746f62616e // "toban"
	held, err := sql.Value[bool](ctx, conn, "lock out other init Jobs", "SELECT pg_try_advisory_lock($1)", int64(key))
	if err != nil {
		return err
	}
	if !held {
		return errBusy
	}
	return nil
}

func (j *Job) passed(point string) {
	if j.At != nil {
		j.At(point)
	}
}
