package upgrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/restore"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/work"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/maintenance"
	"toban.dev/internal/work/major"
	"toban.dev/internal/work/pod"
)

// RehearseOptions are all that is needed: no authority, no key and no store.
type RehearseOptions struct {
	// Settings is the file with the settings of the upgrade, Backup that with those of a verification.
	Settings, Backup string
	// Former is the folder with the programs of the former version, Volume the scratch volume.
	Former, Volume string
	// Run is a folder in memory for sockets.
	Run string
	// Termination is the file for the result.
	Termination string
}

// The steps of a rehearsal besides those of the upgrade and of a verification.
const (
	StepStart     = "start"     // the new version starts
	StepDatabases = "databases" // what a real upgrade leaves to the Job NAME-finish
)

// Rehearse upgrades what Verify has restored, and looks through it, in the container of a rehearsal that runs SQL. What
// is in the way of an upgrade is no error, but in the result. An error says that this is not known.
func Rehearse(ctx context.Context, o RehearseOptions) error {
	r := &rehearsal{RehearseOptions: o, log: slog.New(slog.NewJSONHandler(os.Stdout, nil))}
	err := r.do(ctx)
	if err != nil && ctx.Err() != nil { // whatever else it says: another Pod is to try
		err = fmt.Errorf("the rehearsal was ended: %w", ctx.Err())
	}
	r.result.Error = pod.Words(err)
	fitRehearsal(&r.result)
	return errors.Join(err, pod.Leave(o.Termination, &r.result, &r.result.Error))
}

// mostProblems is how many a result has at most.
const mostProblems = 8

// fitRehearsal keeps the result short enough for a termination message.
func fitRehearsal(result *protocol.RehearsalResult) {
	if more := len(result.Problems) - mostProblems; more > 0 {
		result.Problems = append(result.Problems[:mostProblems:mostProblems], fmt.Sprintf("and %d more", more))
	}
	shortenTo := func(most int) {
		for i := range result.Problems {
			result.Problems[i] = pod.First(result.Problems[i], most)
		}
	}
	shortenTo(1200)
	pod.Fit(result, pod.MaxTermination*3/4, pod.Once(func() { shortenTo(400) }), pod.Once(func() { shortenTo(150) }),
		pod.Once(func() { shortenTo(60) }))
}

// rehearsal is one run.
type rehearsal struct {
	RehearseOptions
	log      *slog.Logger
	settings protocol.UpgradeSettings
	verify   protocol.Verification
	old, new postgres.Programs
	result   protocol.RehearsalResult
	// short is how long the upgrade of the data took, took what is done in the databases.
	short, took time.Duration
}

func (r *rehearsal) do(ctx context.Context) error {
	if err := r.read(ctx); err != nil {
		return err
	}
	// Else the upgrade, which writes all to disk at its end, would have to wait for what the restore has written.
	if err := postgres.SyncFileSystem(r.Volume); err != nil {
		return err
	}
	if upgraded, err := r.upgrade(ctx); err != nil || !upgraded {
		return err
	}
	err := r.look(ctx)
	r.log.Info("rehearsed", "withoutWrites", r.result.WithoutWrites, "problems", r.result.Problems,
		"steps", r.result.Steps)
	return err
}

// read reads what is asked for, and what the container before has done.
func (r *rehearsal) read(ctx context.Context) error {
	var restored protocol.VerifyResult
	if err := pod.ReadSettings(filepath.Join(r.Volume, naming.FileVerified), &restored); err != nil {
		return err
	}
	r.result.Commit, r.result.Steps = restored.Commit, restored.Steps
	var backups protocol.BackupSettings
	if err := errors.Join(pod.ReadSettings(r.Settings, &r.settings), pod.ReadSettings(r.Backup, &backups)); err != nil {
		return err
	}
	r.verify = backups.Verify
	var err error
	if r.new, err = postgres.FindPrograms(ctx, r.settings.To); err != nil {
		return err
	}
	if _, r.old, err = former.Open(r.Former); err != nil {
		return err
	}
	r.result.From, r.result.To = r.old.Version, r.new.Version
	return nil
}

// upgrade does what the Pod of an upgrade does, on the copy. It says whether there is new data.
func (r *rehearsal) upgrade(ctx context.Context) (done bool, err error) {
	s := r.settings
	result, err := major.Upgrade(ctx, major.Options{
		ID: s.ID, Instance: s.Instance, Volume: work.ScratchFolder(r.Volume), Run: r.Run, Former: r.old, New: r.new,
		Method: s.Method, Parameters: s.Parameters, Jobs: runtime.GOMAXPROCS(0), Log: os.Stderr, Step: r.step,
	})
	r.result.Method = result.Method
	for _, step := range result.Steps {
		r.short += time.Duration(step.Seconds * float64(time.Second))
		r.result.Steps = append(r.result.Steps, protocol.VerifyStep{Name: step.Name, Seconds: step.Seconds})
	}
	if errors.Is(err, major.ErrRefused) && !full(err) {
		_, words, _ := strings.Cut(err.Error(), major.ErrRefused.Error()+": ")
		r.problem("%s: %s", major.ErrRefused, words)
		return false, nil
	}
	return err == nil, noRoom(err)
}

func (r *rehearsal) step(words string) { r.log.Info("step", "step", words) }

func (r *rehearsal) problem(format string, args ...any) {
	r.result.Problems = append(r.result.Problems, fmt.Sprintf(format, args...))
}

// full says that something has failed because a volume is, in the words of those who write to it.
func full(err error) bool {
	if err == nil || errors.Is(err, restore.ErrNoRoom) {
		return err != nil
	}
	return slices.ContainsFunc([]string{"No space left on device", "Check free disk space", "the volume is full"},
		func(words string) bool { return strings.Contains(err.Error(), words) })
}

// noRoom says what to do about a full scratch volume, which says nothing about that of an instance.
func noRoom(err error) error {
	if !full(err) {
		return err
	}
	return fmt.Errorf("%w: enlarge the scratch volume (spec.backup.verification.size): %w", restore.ErrNoRoom, err)
}

// look starts the new version, and looks through what it has.
func (r *rehearsal) look(ctx context.Context) error {
	options := work.Inspection(r.verify, r.new, r.Run)
	options.Backup, options.Before = "that was upgraded", r.databases
	options.Folder = volume.RestoreFolder(work.ScratchFolder(r.Volume))
	report, err := restore.Inspect(ctx, options)
	if report.Start > 0 { // else it has not started
		r.result.WithoutWrites = (r.short + report.Start).Seconds()
		r.result.Steps = append(r.result.Steps, protocol.VerifyStep{Name: StepStart, Seconds: report.Start.Seconds()})
	}
	if r.took > 0 {
		r.result.Steps = append(r.result.Steps, protocol.VerifyStep{Name: StepDatabases, Seconds: r.took.Seconds()})
	}
	r.result.Steps = append(r.result.Steps, work.Steps(report)...)
	return noRoom(r.judge(ctx, report, err))
}

// databases does what a real upgrade leaves to the Job NAME-finish, when clients are let in again.
func (r *rehearsal) databases(ctx context.Context, connect restore.Connect) error {
	begin := time.Now()
	defer func() { r.took = time.Since(begin) }()
	r.step("makes statistics, and rebuilds indexes that another library leaves out of order")
	job := maintenance.Job{
		Connect: maintenance.Connect(connect), Parts: []maintenance.Part{maintenance.Statistics, maintenance.Indexes},
		Patience: time.Minute, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	done, err := job.Run(ctx)
	if err != nil {
		return fmt.Errorf("do what is left in the databases: %w", err)
	}
	for _, name := range done.Duplicates {
		r.problem("rows have the same key in the unique index %s", name)
	}
	for _, words := range done.Failures {
		r.problem("%s", words)
	}
	return r.measure(ctx, connect)
}

// measure sees how large all is.
func (r *rehearsal) measure(ctx context.Context, connect restore.Connect) error {
	conn, err := connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, "select sum(pg_database_size(oid))::bigint from pg_database").
		Scan(&r.result.Bytes); err != nil {
		return fmt.Errorf("see how large the databases are: %w", err)
	}
	return nil
}

// judge tells what is a problem of the data, which is in the result then, from what is none, which is the error.
func (r *rehearsal) judge(ctx context.Context, report restore.Report, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || full(err):
		return err
	case report.Start == 0 && ended(err):
		r.problem("PostgreSQL %s does not start with the upgraded data: %s", r.new.Version, err)
		return nil
	case len(report.Steps) == 0 || report.Steps[len(report.Steps)-1].Problem == "":
		return err
	}
	failed := report.Steps[len(report.Steps)-1]
	if failed.Name == restore.StepAmcheck && corrupt(err) {
		r.problem("%s", failed.Problem)
		return nil
	}
	if !r.judgeAnswers(report.Answers) {
		return err
	}
	return nil
}

// judgeAnswers tells which answers are problems, and says whether that is all that there is to say.
func (r *rehearsal) judgeAnswers(answers []restore.Answer) (known bool) {
	if slices.ContainsFunc(answers, func(a restore.Answer) bool { return a.Unanswered }) {
		return false
	}
	for _, a := range answers {
		if a.Problem != "" {
			r.problem("the assertion %s: %s", a.Name, a.Problem)
			known = true
		}
	}
	return known
}

// ended says that a program has ended by itself, and was not killed.
func ended(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Exited()
}

// corruptExit is the exit code of a pg_amcheck that has found something.
const corruptExit = 2

// corrupt says that pg_amcheck has found something, and did not lose its server, or memory.
func corrupt(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != corruptExit {
		return false
	}
	for _, words := range []string{"server closed the connection", "terminating connection", "out of memory"} {
		if strings.Contains(err.Error(), words) {
			return false
		}
	}
	return true
}
