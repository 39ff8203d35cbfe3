package outside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Pgbench runs PostgreSQL's own benchmark against a database, and returns what it printed.
func Pgbench(ctx context.Context, access Access, args ...string) (string, error) {
	command := exec.CommandContext(ctx, pgbenchPath(), args...)
	command.Env = append(os.Environ(), access.Environment()...)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return string(out), nil
}

// pgbenchPath is where Debian has it: not on the PATH.
func pgbenchPath() string {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); err == nil && len(found) > 0 {
		return found[len(found)-1]
	}
	return "pgbench"
}
