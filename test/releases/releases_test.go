package releases

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Of a layer, the program is unpacked wherever it is, and nothing beside it that is not needed.
func TestExtract(t *testing.T) {
	layer, tree := filepath.Join(t.TempDir(), "layer"), t.TempDir()
	for _, name := range []string{
		"usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib64/ld-linux-x86-64.so.2", "usr/share/postgresql/17/postgres.bki",
		"usr/lib/postgresql/17/bin/postgres", "usr/sbin/pgbouncer", "usr/sbin/useradd",
	} {
		write(t, filepath.Join(tree, name))
	}
	pack := exec.CommandContext(t.Context(), "tar", "-c", "-C", tree, "--zstd", "-f", layer, ".")
	if _, err := output(pack); err != nil {
		t.Fatal(err)
	}
	for bin, program := range map[string]string{"usr/lib/postgresql/17/bin": "postgres", "usr/sbin": "pgbouncer"} {
		n, into := needed{bin: bin, program: program}, t.TempDir()
		if err := n.extract(t.Context(), layer, into); err != nil {
			t.Errorf("%s: %v", program, err)
		}
		if !n.isIn(into) || !isFile(filepath.Join(into, "usr/lib/x86_64-linux-gnu/libc.so.6")) {
			t.Errorf("%s or its library was not unpacked", program)
		}
		if isFile(filepath.Join(into, "usr/sbin/useradd")) {
			t.Errorf("with %s another program was unpacked", program)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
