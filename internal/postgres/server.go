// Package postgres runs one PostgreSQL server: its programs, data directory,
// configuration and process. It knows no Kubernetes and makes no decisions.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Server is one PostgreSQL server: where its things are. It has no state of its
// own but the process that it started.
type Server struct {
	Programs Programs
	Data     DataDirectory
	// Run is a folder in memory for the Unix socket and the TLS files.
	Run string
	// Listen is what listen_addresses becomes, Port the TCP port.
	Listen string
	Port   int
}

// Programs is a folder with PostgreSQL's programs of one version.
type Programs struct {
	Dir string
	// Major and Version are as the postgres program says, e.g. 17 and "17.6".
	Major   int
	Version string
}

// ErrNoPrograms says that there are no PostgreSQL programs to run.
var ErrNoPrograms = errors.New("no PostgreSQL programs")

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^ \n]*)`)

// FindPrograms looks where Debian and the official image have the programs of a
// major version, and on the PATH. The error is ErrNoPrograms with a sentence
// when there are none of that version.
func FindPrograms(ctx context.Context, major int) (Programs, error) {
	candidates := []string{fmt.Sprintf("/usr/lib/postgresql/%d/bin", major), fmt.Sprintf("/usr/pgsql-%d/bin", major)}
	if path, err := exec.LookPath("postgres"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	var found []string
	for _, dir := range candidates {
		p, err := programsIn(ctx, dir)
		if err != nil {
			continue
		}
		if p.Major == major {
			return p, nil
		}
		found = append(found, p.Version)
	}
	if len(found) > 0 {
		return Programs{}, fmt.Errorf("%w of version %d in this image, only of %s: spec.image and spec.version must "+
			"go together", ErrNoPrograms, major, strings.Join(found, ", "))
	}
	return Programs{}, fmt.Errorf("%w in this image: expected the postgres program in /usr/lib/postgresql/%d/bin or "+
		"on the PATH", ErrNoPrograms, major)
}

func programsIn(ctx context.Context, dir string) (Programs, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Programs{}, fmt.Errorf("ask postgres in %s for its version: %w", dir, err)
	}
	match := versionLine.FindStringSubmatch(string(out))
	if match == nil {
		return Programs{}, fmt.Errorf("postgres in %s says %q, which is no version", dir, out)
	}
	major, err := strconv.Atoi(match[2])
	if err != nil {
		return Programs{}, fmt.Errorf("postgres in %s says %q: %w", dir, out, err)
	}
	return Programs{Dir: dir, Major: major, Version: match[1]}, nil
}

// command makes a command of one of the programs, with messages in English,
// because they are read by programs of ours too.
func (p Programs) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.Dir, name), args...)
	cmd.Env = append(os.Environ(), "LC_MESSAGES=C", "LANGUAGE=C")
	return cmd
}
