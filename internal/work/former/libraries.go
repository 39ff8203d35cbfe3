package former

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// resolved is a line of the loader about a library that it has found: "libz.so.1 => /lib/libz.so.1 (0x…)".
var resolved = regexp.MustCompile(`^\s*(\S+) => (/.*) \(0x[0-9a-f]+\)$`)

// libraries copies those that a program or library needs, and those that they need, and says which the image lacks.
func (c *collecting) libraries(ctx context.Context, of string) (missing []string, err error) {
	out, err := exec.CommandContext(ctx, c.loader, "--list", of).CombinedOutput()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list the libraries of %s: %w", filepath.Base(of), ctx.Err())
	}
	if err != nil && !strings.Contains(string(out), "=>") {
		return []string{strings.TrimSpace(string(out))}, nil
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		if name, _, ok := strings.Cut(strings.TrimSpace(lines.Text()), " => not found"); ok {
			missing = append(missing, name)
			continue
		}
		found := resolved.FindStringSubmatch(lines.Text())
		if found == nil || strings.HasPrefix(filepath.Base(found[1]), "ld-") {
			continue // the loader itself, and what the kernel brings
		}
		if err := c.library(filepath.Base(found[1]), found[2]); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func (c *collecting) library(name, from string) error {
	to := filepath.Join(c.to, folderLibraries, name)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := copyFile(from, to, 0o755); err != nil {
		return err
	}
	return forgetPaths(to)
}

// modules copies the libraries that the server loads by itself, next to the programs as they are in the image. That of
// the compiler for expressions is left out: it is large, and the server does without.
func (c *collecting) modules(ctx context.Context) error {
	from, err := c.folder(ctx, "--pkglibdir", "../lib", "../lib/postgresql")
	if err != nil {
		return err
	}
	to := filepath.Join(c.to, from)
	return walk(from, to, func(path string, target string) error {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "llvmjit") || !strings.Contains(name, ".so") || !isLibrary(path) {
			return nil
		}
		missing, err := c.libraries(ctx, path)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			c.made.Absent = append(c.made.Absent, name)
			return nil
		}
		if err := copyFile(path, target, 0o755); err != nil {
			return err
		}
		return forgetPaths(target)
	}, "bitcode", "pgxs", "bin")
}

func isLibrary(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return file.Type == elf.ET_DYN
}

// cLibrary asks the loader for its version.
func cLibrary(ctx context.Context, loader string) string {
	out, err := exec.CommandContext(ctx, loader, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if i := strings.LastIndex(line, "version "); err == nil && i >= 0 {
		return "glibc " + strings.TrimRight(line[i+len("version "):], ".")
	}
	return ""
}

// forgetPaths makes the loader forget where a program or library says that others are: they are elsewhere now.
func forgetPaths(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	defer file.Close()
	section := file.SectionByType(elf.SHT_DYNAMIC)
	if section == nil || file.Class != elf.ELFCLASS64 {
		return nil
	}
	entries, err := section.Data()
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	changed := false
	for at := 0; at+16 <= len(entries); at += 16 {
		tag := elf.DynTag(file.ByteOrder.Uint64(entries[at:])) //nolint:gosec // tags are small
		if tag == elf.DT_RPATH || tag == elf.DT_RUNPATH {
			put(file.ByteOrder, entries[at:], ignoredTag)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return overwrite(path, entries, int64(section.Offset)) //nolint:gosec // an offset in a file
}

// ignoredTag is one that no loader knows (those from 0x6000000d on are the operating system's own).
const ignoredTag = 0x6000bad0

func put(order binary.ByteOrder, into []byte, tag uint64) { order.PutUint64(into, tag) }

func overwrite(path string, content []byte, at int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("change %s: %w", filepath.Base(path), err)
	}
	_, err = file.WriteAt(content, at)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", filepath.Base(path), err)
	}
	return nil
}

// shared copies what the server reads of its own besides.
func (c *collecting) shared(ctx context.Context) error {
	debian := "/usr/share/postgresql/" + strconv.Itoa(c.Programs.Major)
	from, err := c.folder(ctx, "--sharedir", "../share/postgresql", "../share", debian)
	if err != nil {
		return err
	}
	return walk(from, filepath.Join(c.to, from), func(path, target string) error {
		return copyFile(path, target, 0o644)
	}, "man", "doc")
}

// folder is one of the programs' folders: where pg_config says, else the first that is there.
func (c *collecting) folder(ctx context.Context, option string, candidates ...string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(c.Programs.Dir, "pg_config"), option).Output()
	if err == nil {
		candidates = append([]string{strings.TrimSpace(string(out))}, candidates...)
	}
	for _, path := range candidates {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Programs.Dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: none of the folders %q is there", ErrImage, candidates)
}

// walk calls what for each file of a folder and its folders, also behind symbolic links, with the place that it gets in
// another, whose folder is there. Links to nowhere and folders with certain names are left out.
func walk(from, to string, what func(path, target string) error, but ...string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("collect %s: %w", from, err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // for everybody
		return fmt.Errorf("collect %s: %w", from, err)
	}
	for _, entry := range entries {
		path, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("collect %s: %w", path, err)
		case info.IsDir() && !slices.Contains(but, entry.Name()):
			err = walk(path, target, what, but...)
		case info.Mode().IsRegular():
			err = what(path, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("collect %s: %w", from, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("collect %s: %w", from, err)
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("collect %s: %w", from, err)
	}
	return nil
}
