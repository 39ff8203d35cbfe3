package major

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"toban.dev/internal/postgres"
)

// versionOption is an option of columns in which PostgreSQL 17.12 keeps where in the WAL a column was made. Without it,
// 17.12 does not read values of composite types that are in tables. So the old data keeps it.
const versionOption = "pg_attver"

// setsVersion are the statements of a dump that set options of a column, one of which may be versionOption. pg_upgrade
// has all names quoted.
var setsVersion = regexp.MustCompile(`(?m)^ALTER (?:FOREIGN )?TABLE ONLY "(?:[^"]|"")+"\."(?:[^"]|"")+" ` +
	`ALTER COLUMN "(?:[^"]|"")+" (SET \((?:[^()\n]*, )?` + versionOption + `=[0-9]{2,}(?:, [^()\n]*)?\));$`)

// withoutVersions takes versionOption out of a dump, in its place: positions and lengths in it stay as they are. A
// pg_dump that knows the option does not write it in this way, so that a server that knows it gets it as before.
func withoutVersions(dump []byte) (found int) {
	for _, at := range setsVersion.FindAllSubmatchIndex(dump, -1) {
		words := dump[at[2]:at[3]]
		text := string(words)
		var kept []string
		for option := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(text, "SET ("), ")"), ", ") {
			if !strings.HasPrefix(option, versionOption+"=") {
				kept = append(kept, option)
			}
		}
		text = "RESET (n_distinct)" // of a column that has no options: it does nothing
		if len(kept) > 0 {
			text = "SET (" + strings.Join(kept, ", ") + ")"
		}
		copy(words, text+strings.Repeat(" ", len(words)-len(text)))
		found++
	}
	return found
}

// Dump runs pg_dump in its place for pg_upgrade, and takes out of its file what the new version would refuse though the
// old one needs it.
func Dump(ctx context.Context, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	for _, arg := range args {
		path, ok := strings.CutPrefix(arg, "--file=")
		if !ok {
			continue
		}
		dump, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the dump: %w", err)
		}
		if !bytes.Contains(dump, []byte(versionOption)) || withoutVersions(dump) == 0 {
			continue
		}
		if err := os.WriteFile(path, dump, 0o600); err != nil {
			return fmt.Errorf("write the dump: %w", err)
		}
	}
	return nil
}

// dumps makes a folder with the programs of the new version for pg_upgrade, in which this program runs pg_dump.
func (u *upgrade) dumps() (folder string, err error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	folder = filepath.Join(u.Run, "programs")
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("make the folder of programs: %w", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of programs: %w", err)
	}
	entries, err := os.ReadDir(u.New.Dir)
	if err != nil {
		return "", fmt.Errorf("look for the programs: %w", err)
	}
	for _, entry := range entries {
		program := filepath.Join(u.New.Dir, entry.Name())
		if entry.Name() == "pg_dump" {
			text := fmt.Sprintf("#!/bin/sh\nexec %s upgrade dump %s \"$@\"\n", quoteWord(own), quoteWord(program))
			err = postgres.WriteFile(filepath.Join(folder, entry.Name()), []byte(text), 0o700)
		} else {
			err = os.Symlink(program, filepath.Join(folder, entry.Name()))
		}
		if err != nil {
			return "", fmt.Errorf("make the folder of programs: %w", err)
		}
	}
	return folder, nil
}

// quoteWord is a word for the shell.
func quoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
