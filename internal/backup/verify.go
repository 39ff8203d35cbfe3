package backup

import (
	"bytes"
	"context"
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

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/bucket"
	"toban.dev/internal/postgres"
)

// Assertion is a question of the user's to a restored database.
type Assertion struct {
	Name, Database, SQL string
	// Want, if set, is what the first column of the first row must be, as text.
	Want *string
}

// Answer is what came of an assertion.
type Answer struct {
	Name string        `json:"name"`
	Rows int           `json:"rows"`
	Got  string        `json:"got"` // the first column of the first row
	Took time.Duration `json:"took"`
	// Problem is "" if it is as wanted.
	Problem string `json:"problem,omitempty"`
}

// Step is a part of a verification.
type Step struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took"`
	// Skipped says why it was not done, Problem what is wrong; both are "" if all is well.
	Skipped string `json:"skipped,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// The steps of a verification, in order.
const (
	StepUnpack  = "unpack"
	StepFiles   = "files"
	StepRecover = "recover"
	StepAmcheck = "amcheck"
	StepAsk     = "ask"
)

// Report is what a verification has found.
type Report struct {
	Backup  string   `json:"backup"`
	Steps   []Step   `json:"steps"`
	Answers []Answer `json:"answers,omitempty"`
	// LSN and Commit are the point to which it could be recovered.
	LSN    string    `json:"lsn,omitempty"`
	Commit time.Time `json:"commit,omitzero"`
	// Objects are those of the archive that are missing, truncated or altered.
	Objects []string `json:"objects,omitempty"`
}

// VerifyOptions say what is verified, and where.
type VerifyOptions struct {
	// Bucket is rooted at the archive.
	Bucket bucket.Bucket
	Opener *Opener
	// Chain is the backup with its parents, the full one first; Plan the WAL to the end of the archive.
	Chain []Backup
	Plan  WALPlan
	// Again is that of RecoverOptions.
	Again func(ctx context.Context, s Segment) ([]PlannedObject, error)
	// Folder has room for the database and must be empty; Run is one with a short name, for the Unix socket.
	Folder, Run string
	Programs    postgres.Programs
	// Parameters are the database's own; of use are those that its extensions need, such as shared_preload_libraries.
	Parameters map[string]string
	Assertions []Assertion
	Workers    int
	// Log gets what the server says.
	Log io.Writer
	// Progress, if set, says how far a step is.
	Progress func(step string, p Progress)
}

type verifying struct {
	VerifyOptions
	scratch
	report Report
}

// Verify restores a backup into a scratch folder, checks every file against the manifest, brings it to
// the end of the WAL, lets pg_amcheck look through it and asks the user's questions. Its
// server listens on a Unix socket only. The error is the first that was found; the
// report has what was found until then. The folder is left to the caller.
func Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if len(o.Chain) == 0 {
		return Report{}, errors.New("verify: there is no backup")
	}
	v := &verifying{VerifyOptions: o, report: Report{Backup: o.last().ID}}
	v.scratch = newScratch(o.Programs, o.Folder, o.Run, o.Parameters, o.Log)
	defer v.kill(ctx)
	for _, step := range []struct {
		name string
		do   func(context.Context) (skipped string, err error)
	}{{StepUnpack, v.unpack}, {StepFiles, v.files}, {StepRecover, v.recover}, {StepAmcheck, v.amcheck}, {StepAsk, v.ask}} {
		begin := time.Now()
		skipped, err := step.do(ctx)
		s := Step{Name: step.name, Took: time.Since(begin), Skipped: skipped}
		if err != nil {
			s.Problem = err.Error()
		}
		v.report.Steps = append(v.report.Steps, s)
		if err != nil {
			v.report.Objects = BrokenObjects(err)
			return v.report, fmt.Errorf("verify backup %s: %s: %w", v.report.Backup, step.name, err)
		}
	}
	return v.report, nil
}

func (o VerifyOptions) last() Backup { return o.Chain[len(o.Chain)-1] }

// BrokenObjects are the names of those that an error is about.
func BrokenObjects(err error) []string {
	var object *ObjectError
	if errors.As(err, &object) {
		return []string{object.Name}
	}
	var stuck *StuckError
	if errors.As(err, &stuck) {
		return stuck.Objects
	}
	return nil
}

func (v *verifying) unpack(ctx context.Context) (string, error) {
	if err := os.MkdirAll(v.Folder, 0o700); err != nil {
		return "", fmt.Errorf("make room for the data: %w", err)
	}
	if err := room(v.Folder, v.Chain, 0, "spec.backup.verification.size"); err != nil {
		return "", err
	}
	return "", v.scratch.unpack(ctx, UnpackOptions{Bucket: v.Bucket, Opener: v.Opener, Chain: v.Chain, Workers: v.Workers, Check: true,
		Progress: func(p Progress) {
			if v.Progress != nil {
				v.Progress(StepUnpack, p)
			}
		}})
}

func (v *verifying) files(ctx context.Context) (string, error) {
	return "", VerifyFiles(ctx, v.server.Data(), v.Workers)
}

// recover brings the server to the end of the archive, and out of recovery.
func (v *verifying) recover(ctx context.Context) (string, error) {
	reached, err := v.scratch.recover(ctx, RecoverOptions{Bucket: v.Bucket, Opener: v.Opener, Plan: v.Plan, Again: v.Again,
		Backup: v.last(), Ahead: ahead(v.Folder), Workers: v.Workers, Progress: v.replayed})
	v.report.LSN, v.report.Commit = reached.LSN.String(), reached.Commit
	if err != nil {
		return "", err
	}
	return "", v.scratch.promote(ctx)
}

// replayed reports the progress of the replay, in bytes of WAL.
func (v *verifying) replayed(r Recovered) {
	if v.Progress != nil && r.LSN > v.last().StartLSN {
		start := v.last().StartLSN
		v.Progress(StepRecover, Progress{Done: int64(r.LSN - start), Total: int64(r.End - start)})
	}
}

// amcheck looks through all tables and B-tree indexes of all databases. An image without the
// extension (Debian: postgresql-contrib) does without.
func (v *verifying) amcheck(ctx context.Context) (skipped string, err error) {
	program := filepath.Join(v.Programs.Dir, "pg_amcheck")
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return "the image has no pg_amcheck", nil
	}
	there, _, err := v.query(ctx, "postgres", "select count(*) from pg_available_extensions where name = 'amcheck'")
	if err != nil {
		return "", err
	}
	if there == "0" {
		return "the image has no extension amcheck", nil
	}
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--all", "--install-missing", "--no-password", "--host", v.Run,
		"--port", strconv.Itoa(scratchPort), "--username", "postgres", "--jobs", strconv.Itoa(v.Workers))
	cmd.Stdout, cmd.Stderr = &words, &words // what is corrupt is on the former
	if err := postgres.Children.Run(cmd); err != nil {
		lines := strings.Split(strings.TrimSpace(words.String()), "\n")
		return "", fmt.Errorf("pg_amcheck: %w: %s", err, strings.Join(lines[:min(len(lines), 10)], "; "))
	}
	return "", nil
}

// ask asks the user's questions, all of them, whatever one says.
func (v *verifying) ask(ctx context.Context) (skipped string, err error) {
	if len(v.Assertions) == 0 {
		return "there are no questions", nil
	}
	var wrong []string
	for _, a := range v.Assertions {
		answer := v.answer(ctx, a)
		v.report.Answers = append(v.report.Answers, answer)
		if answer.Problem != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", a.Name, answer.Problem))
		}
	}
	if len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, "; "))
	}
	return "", nil
}

func (v *verifying) answer(ctx context.Context, a Assertion) Answer {
	begin := time.Now()
	got, rows, err := v.query(ctx, a.Database, a.SQL)
	answer := Answer{Name: a.Name, Rows: rows, Got: got, Took: time.Since(begin)}
	switch {
	case err != nil:
		answer.Problem = err.Error()
	case a.Want != nil && rows == 0:
		answer.Problem = fmt.Sprintf("it gives no row, expected %q", *a.Want)
	case a.Want != nil && got != *a.Want:
		answer.Problem = fmt.Sprintf("it gives %q, expected %q", got, *a.Want)
	}
	return answer
}

// query gives the first value of the first row as text ("" for NULL), and the number of rows.
func (v *verifying) query(ctx context.Context, database, sql string) (first string, rows int, err error) {
	conn, err := pgconn.Connect(ctx, socketInfo(v.server, database))
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	results, err := conn.Exec(ctx, sql).ReadAll()
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
