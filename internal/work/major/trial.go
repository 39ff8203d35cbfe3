package major

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/protocol"
)

// TrialOptions say what is tried.
type TrialOptions struct {
	// Options are as for an upgrade; the volume is a scratch one, which is used up. ID and Method are of no effect.
	Options
	// Source is the connection string to the server whose schema is tried, without a database; Databases are those that
	// are copied.
	Source    string
	Databases []string
}

// Tried is what a trial has shown.
type Tried struct {
	// Refused is what pg_upgrade has said, "" where it has done its work; Skipped what could not be copied.
	Refused, Skipped string
	// Rejected is what the new server says of the parameters, "" where it accepts them.
	Rejected string
	Steps    []protocol.UpgradeStep
}

// Trial upgrades a copy of a server without its rows: its roles, databases and what is declared in them. An error says
// that nothing has been found out.
func Trial(ctx context.Context, o TrialOptions) (Tried, error) {
	o.Method = protocol.MethodLink
	t := &trial{upgrade: newUpgrade(o.Options), source: o.Source, databases: o.Databases}
	err := t.clearSockets()
	if err == nil {
		err = t.makeOld(ctx)
	}
	if err == nil {
		err = t.copySchema(ctx)
	}
	if err != nil {
		return t.tried, err
	}
	err = t.steps(ctx)
	t.tried.Steps = t.result.Steps
	if errors.Is(err, ErrRefused) {
		_, t.tried.Refused, _ = strings.Cut(err.Error(), ErrRefused.Error()+": ")
		err = nil
	}
	if err != nil {
		return t.tried, err
	}
	return t.tried, t.checkParameters(ctx)
}

type trial struct {
	*upgrade
	source    string
	databases []string
	tried     Tried
}

// makeOld makes an empty server of the old version.
func (t *trial) makeOld(ctx context.Context) error {
	t.Step("makes an empty server of the old version")
	if err := os.RemoveAll(t.old.data); err != nil {
		return fmt.Errorf("make room for the trial: %w", err)
	}
	cmd := t.command(ctx, t.Former, "initdb", "--pgdata", t.old.data, "--username", naming.RoleSuperuser,
		"--auth", "reject", "--encoding", "UTF8", "--locale", "C", "--data-checksums", "--no-sync", "--no-instructions")
	return t.run(cmd)
}

// copySchema copies what is declared.
func (t *trial) copySchema(ctx context.Context) error {
	t.Step("copies the schema")
	options, err := t.configure(t.old, "-p 5432 -c listen_addresses= -c unix_socket_permissions=0700 -c fsync=off "+
		"-c unix_socket_directories="+t.Run)
	if err != nil {
		return err
	}
	log := filepath.Join(t.Run, "former.log")
	start := t.command(ctx, t.Former, "pg_ctl", "-D", t.old.data, "-w", "-l", log, "-o", options, "start")
	if err := t.run(start); err != nil {
		return fmt.Errorf("the old server can't start: %w: %s", err, tailOf(log, 5))
	}
	copied := t.copyAll(ctx)
	stop := t.command(context.WithoutCancel(ctx), t.Former, "pg_ctl", "-D", t.old.data, "-w", "-m", "fast", "stop")
	return errors.Join(copied, t.run(stop))
}

// withTemplates are the databases that every server has.
var withTemplates = []string{"postgres", "template1"}

func (t *trial) copyAll(ctx context.Context) error {
	if err := t.copy(ctx, "pg_dumpall", "postgres", "--globals-only", "--no-tablespaces", "--no-role-passwords",
		"--dbname="+t.source+" dbname=postgres"); err != nil {
		return err
	}
	for _, name := range t.databases {
		into, args := name, []string{"--schema-only", "--no-tablespaces", "--no-subscriptions",
			"--dbname=" + t.source + " dbname=" + quoteValue(name)}
		if !slices.Contains(withTemplates, name) {
			into, args = "postgres", append(args, "--create")
		}
		if err := t.copy(ctx, "pg_dump", into, args...); err != nil {
			return err
		}
	}
	return nil
}

// quoteValue is a value in a connection string.
func quoteValue(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// programOptions has nothing count that somebody has set for a database or a role, in the copy neither, where that
// comes along. pg_dump and its dumps choose the encoding.
func programOptions(major int) string {
	settings := sql.SettingsAt(major, naming.RoleSuperuser, nil)
	delete(settings, "client_encoding")
	return sql.OptionsVariable(settings)
}

// copy writes a dump of the server, and runs it in the copy. What the copy does not accept is skipped.
func (t *trial) copy(ctx context.Context, program, into string, args ...string) error {
	path := filepath.Join(t.Volume, "dump.sql")
	defer os.Remove(path) //nolint:errcheck // the volume is a scratch one
	dump := t.command(ctx, t.Former, program, append(args, "--file="+path)...)
	dump.Env = append(dump.Env, programOptions(t.Former.Major))
	var said bytes.Buffer
	dump.Stderr = io.MultiWriter(t.Log, &said)
	if err := t.run(dump); err != nil {
		return fmt.Errorf("copy the schema: %w: %s", err, lastLines(said.String(), 3))
	}
	restore := t.command(ctx, t.Former, "psql", "--no-psqlrc", "--quiet", "--host="+t.Run, "--port="+strconv.Itoa(5432),
		"--username="+naming.RoleSuperuser, "--dbname="+into, "--file="+path)
	restore.Env = append(restore.Env, programOptions(t.Former.Major))
	restore.Stdout = io.Discard
	said.Reset()
	restore.Stderr = io.MultiWriter(t.Log, &said)
	if err := t.run(restore); err != nil {
		return fmt.Errorf("copy the schema: %w: %s", err, lastLines(said.String(), 3))
	}
	for line := range strings.Lines(said.String()) {
		_, words, ok := strings.Cut(line, "ERROR:")
		words = strings.TrimSpace(words)
		if ok && words != `role "postgres" already exists` && len(t.tried.Skipped) < mostWords/2 {
			t.tried.Skipped = strings.TrimPrefix(t.tried.Skipped+"; "+words, "; ")
		}
	}
	return nil
}

// checkParameters asks the new server whether it accepts the parameters of the SampleDB, and starts it with them.
func (t *trial) checkParameters(ctx context.Context) error {
	data := t.new.data
	if _, err := os.Stat(data); err != nil {
		return nil //nolint:nilerr // pg_upgrade has failed, and says more
	}
	server := &postgres.Server{
		Programs: t.New, Data: postgres.DataDirectory{Volume: filepath.Dir(data)}, Run: t.Run, Port: 5432,
	}
	settings := postgres.Settings{Name: t.Instance, Parameters: t.Parameters}
	err := server.Check(ctx, settings)
	var rejected *postgres.RejectedError
	var exit *exec.ExitError
	if errors.As(err, &rejected) {
		t.tried.Rejected, err = rejected.Words, nil
	}
	if errors.As(err, &exit) {
		return fmt.Errorf("ask the new server whether it accepts the parameters: %w", err)
	}
	if err != nil || t.tried.Rejected != "" || t.tried.Refused != "" {
		return err
	}
	return t.start(ctx, server, settings)
}

// startPatience is how long a new server without rows may take to start, in seconds.
const startPatience = 120

// start starts the new server with the parameters of the SampleDB: some that are accepted one by one keep a server from
// starting. What depends on the Pod is left out.
func (t *trial) start(ctx context.Context, server *postgres.Server, settings postgres.Settings) error {
	t.Step("starts the new version with the parameters of the SampleDB")
	if err := server.Configure(settings); err != nil {
		return err
	}
	log := filepath.Join(t.Run, "new.log")
	options := "-p 5432 -c listen_addresses= -c unix_socket_permissions=0700 -c unix_socket_directories=" + t.Run +
		" -c min_dynamic_shared_memory=0 -c dynamic_shared_memory_type=mmap -c fsync=off"
	for _, setting := range safe {
		options += " -c " + setting
	}
	start := t.command(ctx, t.New, "pg_ctl", "-D", t.new.data, "-w", "-t", strconv.Itoa(startPatience), "-l", log,
		"-o", options, "start")
	failed := t.run(start)
	stop := t.command(context.WithoutCancel(ctx), t.New, "pg_ctl", "-D", t.new.data, "-w", "-m", "immediate", "stop")
	stopped := t.run(stop)
	var exit *exec.ExitError
	switch {
	case failed == nil:
		return stopped
	case ctx.Err() == nil && errors.As(failed, &exit) && exit.Exited():
		t.tried.Rejected = "it does not start with them: " + tailOf(log, 3)
		return nil
	}
	return fmt.Errorf("start the new server with the parameters: %w", failed)
}
