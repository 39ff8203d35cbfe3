package tablerestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
)

// dump is a dump of the copy, and how it gets into the primary.
type dump struct {
	*Options
	copy   *pgx.Conn
	loader *loader
}

// dumpFile is where what pg_dump writes is.
func (o *Options) dumpFile() string { return filepath.Join(o.Folder, "toban-bring.dump") }

// program is one of PostgreSQL's, with nothing of this process' own environment that libpq reads.
func (d *dump) program(ctx context.Context, name string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.Programs.Dir, name), args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// pgOptions is PGOPTIONS for the sessions of a role with a server of a major version.
func pgOptions(major int, role string) string {
	var words []string
	for name, value := range sql.SettingsAt(major, role, map[string]string{"application_name": "toban restore"}) {
		if name != "client_encoding" && name != "application_name" { // the programs set them themselves
			words = append(words, "-c "+name+"="+strings.NewReplacer(`\`, `\\`, " ", `\ `).Replace(value))
		}
	}
	slices.Sort(words)
	return "PGOPTIONS=" + strings.Join(words, " ")
}

// write has pg_dump write the schemas of the copy to the scratch folder, or all of its database if none is named.
func (d *dump) write(ctx context.Context, schemas ...string) error {
	args := []string{"--format=custom", "--compress=1", "--file=" + d.dumpFile(), "--no-password",
		"--no-publications", "--no-subscriptions", "--no-security-labels", "--no-tablespaces"}
	for _, schema := range schemas {
		args = append(args, "--strict-names", "--schema="+pattern(schema))
	}
	env := append(slices.Clone(d.CopyEnv), "PGDATABASE="+d.Database, pgOptions(d.Programs.Major, naming.RoleSuperuser))
	if err := run1(d.program(ctx, "pg_dump", env, args...)); err != nil {
		return fmt.Errorf("dump what is restored: %w", err)
	}
	d.passed("dumped")
	return nil
}

// pattern is a name as pg_dump takes it, with no wildcards.
func pattern(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// programError is what one of PostgreSQL's programs has said.
type programError struct {
	err   error
	words string
}

func (e *programError) Error() string { return e.err.Error() + ": " + e.words }
func (e *programError) Unwrap() error { return e.err }

// run1 runs a program. Of what it has said the first lines are kept that are errors.
func run1(cmd *exec.Cmd) error {
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	err := postgres.Children.Run(cmd)
	if err == nil {
		return nil
	}
	var said []string
	for line := range strings.Lines(words.String()) {
		line = strings.TrimSpace(line)
		if _, after, is := strings.Cut(line, "error: "); is && len(said) < 5 {
			said = append(said, after)
		}
	}
	if len(said) == 0 {
		said = []string{strings.TrimSpace(words.String())}
	}
	return &programError{fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err), strings.Join(said, "; ")}
}

// temporary are words of libpq, of the programs and of a server that may not come again.
var temporary = []string{
	"connection to server", "server closed the connection", "terminating connection", "the database system is",
	"No space left", "could not extend file", "deadlock detected", "too many clients", "too many connections",
	"remaining connection slots", "read-only transaction", "signal: ", "out of memory", "lock timeout",
	"could not send", "could not receive", "no connection to the server",
}

// refused says that what a program has said is about what was asked.
func (e *programError) refused() bool {
	return !slices.ContainsFunc(temporary, func(words string) bool { return strings.Contains(e.Error(), words) })
}

// entry is a line of a dump's table of contents.
type entry struct {
	line, kind, tag, owner string
}

// kinds are what entries are, where those have more than one word.
var kinds = []string{
	"ACCESS METHOD", "BLOB COMMENTS", "BLOB METADATA", "CHECK CONSTRAINT", "DATABASE PROPERTIES", "DEFAULT ACL",
	"EVENT TRIGGER", "FK CONSTRAINT", "FOREIGN DATA WRAPPER", "FOREIGN SERVER", "FOREIGN TABLE", "INDEX ATTACH",
	"LARGE OBJECT", "MATERIALIZED VIEW DATA", "MATERIALIZED VIEW", "OPERATOR CLASS", "OPERATOR FAMILY",
	"PROCEDURAL LANGUAGE", "PUBLICATION TABLES IN SCHEMA", "PUBLICATION TABLE", "ROW SECURITY", "SECURITY LABEL",
	"SEQUENCE OWNED BY", "SEQUENCE SET", "SHELL TYPE", "STATISTICS DATA", "SUBSCRIPTION TABLE", "TABLE ATTACH",
	"TABLE DATA", "TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY", "TEXT SEARCH PARSER", "TEXT SEARCH TEMPLATE",
	"USER MAPPING",
}

// contents are the entries of the dump, in the order in which they must be restored. Owners are those in the copy.
func (d *dump) contents(ctx context.Context) (out []entry, err error) {
	owners, err := column(ctx, d.copy, "select rolname::text from pg_roles order by length(rolname::text) desc")
	if err != nil {
		return nil, err
	}
	cmd := d.program(ctx, "pg_restore", nil, "--list", d.dumpFile())
	var list, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &list, &said
	if err := postgres.Children.Run(cmd); err != nil {
		return nil, fmt.Errorf("list what is in the dump: %w: %s", err, strings.TrimSpace(said.String()))
	}
	for line := range strings.Lines(list.String()) {
		line = strings.TrimRight(line, "\n")
		_, rest, is := strings.Cut(line, "; ")
		words := strings.SplitN(rest, " ", 3) // the oids of its catalog and of itself
		if !is || strings.HasPrefix(line, ";") || len(words) < 3 {
			continue
		}
		out = append(out, parseEntry(line, words[2], owners))
	}
	return out, nil
}

func parseEntry(line, rest string, owners []string) entry {
	e := entry{line: line}
	for _, kind := range kinds {
		if strings.HasPrefix(rest, kind+" ") {
			e.kind = kind
			break
		}
	}
	if e.kind == "" {
		e.kind, _, _ = strings.Cut(rest, " ")
	}
	e.tag = strings.TrimPrefix(rest, e.kind+" ")
	for _, owner := range owners {
		if strings.HasSuffix(e.tag, " "+owner) {
			e.tag, e.owner = strings.TrimSuffix(e.tag, " "+owner), owner
			break
		}
	}
	return e
}

// load restores entries, those that follow each other and have one owner together, as that owner. It stops at the first
// error; with go on it tells what was refused, and restores the rest.
func (d *dump) load(ctx context.Context, database string, entries []entry, goOn bool) (problems []string, err error) {
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].owner == entries[0].owner {
			n++
		}
		err := d.loadAs(ctx, database, entries[0].owner, entries[:n], goOn)
		var said *programError
		switch {
		case err == nil:
		case errors.As(err, &said) && said.refused() && ctx.Err() == nil:
			if !goOn {
				return nil, refuse("%w", err)
			}
			problems = append(problems, said.words)
		default:
			return nil, err
		}
		entries = entries[n:]
	}
	return problems, nil
}

func (d *dump) loadAs(ctx context.Context, database, owner string, entries []entry, goOn bool) error {
	actor, back, err := d.loader.become(ctx, owner, database)
	if err != nil {
		return err
	}
	defer back()
	list := d.dumpFile() + ".list"
	var text strings.Builder
	for _, e := range entries {
		text.WriteString(e.line + "\n")
	}
	if err := os.WriteFile(list, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write the list of what is restored: %w", err)
	}
	defer func() { _ = os.Remove(list) }() // it is on a scratch volume
	args := []string{"--no-owner", "--no-tablespaces", "--no-password", "--role=" + owner, "--use-list=" + list,
		"--dbname=dbname='" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(database) + "'"}
	if !goOn {
		args = append(args, "--exit-on-error")
	}
	env := append(slices.Clone(d.PrimaryEnv), "PGUSER="+actor.name, "PGPASSWORD="+actor.password,
		pgOptions(d.Programs.Major, actor.name))
	if err := run1(d.program(ctx, "pg_restore", env, append(args, d.dumpFile())...)); err != nil {
		return fmt.Errorf("load what is restored: %w", err)
	}
	return nil
}
