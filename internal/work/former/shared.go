package former

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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
