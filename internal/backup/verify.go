package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	server  *postgres.Server
	process *postgres.Process
	report  Report
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
	v.server = &postgres.Server{Programs: o.Programs, Volume: o.Folder, Run: o.Run, Port: scratchPort}
	defer v.stop(ctx)
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
			v.report.Objects = brokenObjects(err)
			return v.report, fmt.Errorf("verify backup %s: %s: %w", v.report.Backup, step.name, err)
		}
	}
	return v.report, nil
}

// scratchPort is part of the socket's name; nothing listens on the network.
const scratchPort = 5432

func (o VerifyOptions) last() Backup { return o.Chain[len(o.Chain)-1] }

// brokenObjects are the names in an error.
func brokenObjects(err error) []string {
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

func (v *verifying) stop(ctx context.Context) {
	if v.process != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		v.process.Stop(ctx, postgres.StopImmediate) // its data is of no use any more
	}
}

func (v *verifying) unpack(ctx context.Context) (string, error) {
	o := UnpackOptions{Bucket: v.Bucket, Opener: v.Opener, Chain: v.Chain, Data: v.server.Data(),
		Tablespaces: map[uint32]string{}, Scratch: filepath.Join(v.Folder, "scratch"), Programs: v.Programs.Dir, Workers: v.Workers}
	for _, space := range v.last().Tablespaces {
		o.Tablespaces[space.OID] = filepath.Join(v.Folder, "tablespaces", strconv.FormatUint(uint64(space.OID), 10))
	}
	if v.Progress != nil {
		o.Progress = func(p Progress) { v.Progress(StepUnpack, p) }
	}
	return "", Unpack(ctx, o)
}

func (v *verifying) files(ctx context.Context) (string, error) {
	return "", VerifyFiles(ctx, v.server.Data(), v.Workers)
}

// recover brings the server to the end of the archive, and out of recovery.
func (v *verifying) recover(ctx context.Context) (string, error) {
	if err := v.configure(ctx); err != nil {
		return "", err
	}
	r := NewRecovery(RecoverOptions{Bucket: v.Bucket, Opener: v.Opener, Plan: v.Plan, Again: v.Again, Backup: v.last(),
		WAL: filepath.Join(v.server.Data(), "pg_wal"), Workers: v.Workers, Progress: v.replayed})
	if err := r.Prepare(ctx); err != nil {
		return "", err
	}
	var err error
	if v.process, err = v.server.Start(ctx, v.Log); err != nil {
		return "", err
	}
	ctx, cancel := WhileRunning(ctx, v.process)
	defer cancel()
	replayer := &LocalReplayer{Server: v.server}
	defer replayer.Close()
	reached, err := r.Run(ctx, replayer)
	v.report.LSN, v.report.Commit = reached.LSN.String(), reached.Commit
	if err != nil {
		return "", err
	}
	session, err := v.server.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer session.Close()
	return "", session.Promote(ctx)
}

// replayed reports the progress of the replay, in bytes of WAL.
func (v *verifying) replayed(r Recovered) {
	if v.Progress != nil && r.LSN > v.last().StartLSN {
		start := v.last().StartLSN
		v.Progress(StepRecover, Progress{Done: int64(r.LSN - start), Total: int64(r.End - start)})
	}
}

// configure writes a configuration of the scratch server's own: the database's may name files and addresses
// that are not here. It must not wait for a disk: if it crashes, all begins anew.
func (v *verifying) configure(ctx context.Context) error {
	control, err := v.server.Control(ctx)
	if err != nil {
		return err
	}
	all := map[string]string{}
	for name, value := range v.Parameters {
		if name = strings.ToLower(name); !postgres.Owned(name) && name != "synchronous_commit" {
			all[name] = value
		}
	}
	for name, bound := range control.Least { // a standby needs no less than its primary had
		all[name] = strconv.Itoa(bound)
	}
	settings, err := Target{}.Settings(v.Plan.Timeline)
	if err != nil {
		return err
	}
	maps.Copy(all, settings)
	maps.Copy(all, map[string]string{"listen_addresses": "", "port": strconv.Itoa(scratchPort), "unix_socket_directories": v.Run,
		"unix_socket_permissions": "0700", "ssl": "off", "logging_collector": "off", "log_destination": "stderr", "lc_messages": "C",
		"archive_mode": "off", "fsync": "off"})
	files := map[string]string{
		"postgresql.conf":      configText(all),
		"postgresql.auto.conf": "",
		// Nobody else gets at the socket: its folder is ours alone, and so is the socket.
		"pg_hba.conf":    "local all all trust\n",
		"pg_ident.conf":  "",
		"standby.signal": "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.server.Data(), name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("configure the scratch server: %w", err)
		}
	}
	return nil
}

// configText is a postgresql.conf (PostgreSQL 17 documentation, 19.1.2).
func configText(all map[string]string) string {
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`, "\n", " ", "\r", " ")
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, quote.Replace(all[name]))
	}
	return text.String()
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
