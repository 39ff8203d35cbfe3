package former

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"toban.dev/internal/postgres"
)

// ErrImage says that the programs of an image can't be collected.
var ErrImage = errors.New("the programs of the former image can't be collected")

// needed are the programs without which there is no upgrade; wanted are those for its check.
var (
	needed = []string{"postgres", "pg_ctl", "pg_controldata", "pg_resetwal", "initdb"}
	wanted = []string{"pg_dump", "pg_dumpall", "pg_restore", "psql", "pg_config"}
)

// Collected is what a folder has.
type Collected struct {
	Major   int    `json:"major"`
	Version string `json:"version"`
	// Bin is the folder with the programs, in this one.
	Bin string `json:"bin"`
	// CLibrary is the C library with its version.
	CLibrary string `json:"cLibrary,omitempty"`
	// Locales are those of the C library, besides C and POSIX.
	Locales []string `json:"locales,omitempty"`
	// Absent are libraries of extensions that have been left out, because the image lacks what they need.
	Absent []string `json:"absent,omitempty"`
}

// The folders of what was collected.
const (
	folderPrograms  = "programs"
	folderLibraries = "libraries"
	folderLoader    = "loader"
	folderLocales   = "locales"
	fileCollected   = "collected.json"
)

// Source is what is collected.
type Source struct {
	Programs postgres.Programs
	// Locales is the folder with the C library's locales, "" for where it is.
	Locales string
}

// collecting is one run.
type collecting struct {
	Source
	to     string
	loader string // the interpreter of the programs
	made   Collected
}

// Collect copies all that the programs need into a folder, which is to have the same path where they will run. It may
// be cut off, and be called again. An ErrImage would come again.
func Collect(ctx context.Context, s Source, to string) (Collected, error) {
	if s.Locales == "" {
		s.Locales = "/usr/lib/locale"
	}
	c := &collecting{Source: s, to: to, made: Collected{Major: s.Programs.Major, Version: s.Programs.Version}}
	if err := c.empty(); err != nil {
		return c.made, err
	}
	for _, step := range []func(context.Context) error{c.findLoader, c.programs, c.modules, c.shared, c.locales} {
		if err := step(ctx); err != nil {
			return c.made, err
		}
	}
	text, err := json.Marshal(c.made)
	if err != nil {
		return c.made, fmt.Errorf("note what has been collected: %w", err)
	}
	return c.made, postgres.WriteFile(filepath.Join(to, fileCollected), text, 0o644)
}

// empty removes what a run before has left, and makes the folders.
func (c *collecting) empty() error {
	entries, err := os.ReadDir(c.to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look into the folder of the collected programs: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(c.to, entry.Name())); err != nil {
			return fmt.Errorf("remove what was collected before: %w", err)
		}
	}
	c.made.Bin = strings.TrimPrefix(c.Programs.Dir, "/")
	for _, folder := range []string{folderPrograms, folderLibraries, folderLoader, folderLocales, c.made.Bin} {
		if err := os.MkdirAll(filepath.Join(c.to, folder), 0o755); err != nil { //nolint:gosec // for everybody
			return fmt.Errorf("make a folder for the collected programs: %w", err)
		}
	}
	return nil
}

// findLoader finds the interpreter of the programs, which has to take another argv[0] (glibc 2.33), because PostgreSQL
// finds its files from there.
func (c *collecting) findLoader(ctx context.Context) error {
	path := filepath.Join(c.Programs.Dir, "postgres")
	loader, err := interpreter(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrImage, err)
	}
	help, err := exec.CommandContext(ctx, loader, "--help").CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("ask the loader what it can do: %w", ctx.Err())
	}
	if err != nil || !strings.Contains(string(help), "--argv0") {
		return fmt.Errorf("%w: they have to run in the new image, for which this one must have glibc 2.33 or newer "+
			"(Debian 12, Ubuntu 22.04, RHEL 9), and no other C library as that of Alpine. Move the data with "+
			"pg_dump, or move spec.image to such an image of the same major version first", ErrImage)
	}
	c.loader = loader
	c.made.CLibrary = cLibrary(ctx, loader)
	return copyFile(loader, filepath.Join(c.to, folderLoader, "ld.so"), 0o755)
}

// interpreter is the one that a program names.
func interpreter(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the program %s: %w", filepath.Base(path), err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			return "", fmt.Errorf("read the program %s: %w", filepath.Base(path), err)
		}
		return strings.TrimRight(string(text), "\x00"), nil
	}
	return "", fmt.Errorf("the program %s names no loader", filepath.Base(path))
}

// programs copies the programs, and puts in their places the scripts that run them.
func (c *collecting) programs(ctx context.Context) error {
	for _, name := range append(slices.Clone(needed), wanted...) {
		from := filepath.Join(c.Programs.Dir, name)
		if _, err := os.Stat(from); err != nil {
			if slices.Contains(needed, name) {
				return fmt.Errorf("%w: the program %s is missing", ErrImage, name)
			}
			continue
		}
		if loader, err := interpreter(from); err != nil || loader != c.loader {
			if slices.Contains(needed, name) {
				return errors.Join(fmt.Errorf("%w: the program %s is no usual one", ErrImage, name), err)
			}
			continue
		}
		missing, err := c.libraries(ctx, from)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return fmt.Errorf("%w: the program %s needs %q, which the image lacks", ErrImage, name, missing)
		}
		if err := c.program(name, from); err != nil {
			return err
		}
	}
	return nil
}

// program copies one, and writes its script. The loader is run by the name of the program, which is then that of the
// process.
func (c *collecting) program(name, from string) error {
	program, loader := filepath.Join(c.to, folderPrograms, name), filepath.Join(c.to, folderLoader, name)
	if err := copyFile(from, program, 0o755); err != nil {
		return err
	}
	if err := forgetPaths(program); err != nil {
		return err
	}
	if err := os.Symlink("ld.so", loader); err != nil {
		return fmt.Errorf("collect the program %s: %w", name, err)
	}
	script := fmt.Sprintf(`#!/bin/sh
# Runs a program of the former image with the libraries and locales that came with it.
unset LD_LIBRARY_PATH LD_PRELOAD
LOCPATH=%s
export LOCPATH
exec %s --inhibit-cache --library-path %s --argv0 "$0" %s "$@"
`, shell(filepath.Join(c.to, folderLocales)), shell(loader), shell(filepath.Join(c.to, folderLibraries)),
		shell(program))
	//nolint:gosec // a program
	if err := os.WriteFile(filepath.Join(c.to, c.made.Bin, name), []byte(script), 0o755); err != nil {
		return fmt.Errorf("collect the program %s: %w", name, err)
	}
	return nil
}

func shell(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// Open is what was collected into a folder, with its programs.
func Open(folder string) (Collected, postgres.Programs, error) {
	var c Collected
	text, err := os.ReadFile(filepath.Join(folder, fileCollected))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, postgres.Programs{}, fmt.Errorf("find the programs of the former version: %w", err)
	}
	return c, postgres.Programs{Dir: filepath.Join(folder, c.Bin), Major: c.Major, Version: c.Version}, nil
}
