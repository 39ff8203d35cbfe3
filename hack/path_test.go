// Package hack tests the scripts of this folder that others rest on.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// declared is the PATH that hack/path.sh makes of a folder and packages, as hack/test.sh has it made.
func declared(t *testing.T, folder string, packages ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "./path.sh", append([]string{folder}, packages...)...)
	c.Stderr = t.Output()
	out, err := c.Output()
	if err != nil {
		t.Fatalf("hack/path.sh: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// found says whether a program is found on a PATH.
func found(t *testing.T, path, program string) bool {
	t.Helper()
	for folder := range strings.SplitSeq(path, ":") {
		if info, err := os.Stat(filepath.Join(folder, program)); err == nil && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

func TestOnlyDeclaredProgramsAreOnThePath(t *testing.T) {
	for _, program := range []string{"dpkg-query", "apt-cache"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("not a Debian: %v", err)
		}
	}
	hand := t.TempDir()
	if err := os.WriteFile(filepath.Join(hand, "by-hand"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", hand+":"+os.Getenv("PATH"))
	folder := filepath.Join(t.TempDir(), "programs")
	programs := map[string]struct {
		program string
		always  bool
		by      string
	}{
		"of the base system":                         {"sed", true, ""},
		"of the base system, by update-alternatives": {"awk", true, ""},
		"Go":                    {"go", true, ""},
		"of a declared package": {"git", false, "git, ca-certificates"},
		"of a package on which a declared one depends":   {"openssl", false, "git, ca-certificates"},
		"of an installed package that is not declared":   {"patchelf", false, ""},
		"in a folder of the PATH, installed by somebody": {"by-hand", false, ""},
	}
	check := func(packages, path string) {
		for name, p := range programs {
			if want := p.always || p.by == packages; found(t, path, p.program) != want {
				t.Errorf("packages %q: %s, a program %s, is found: %v", packages, p.program, name, !want)
			}
		}
	}
	check("git, ca-certificates", declared(t, folder, "git", "ca-certificates", "a-package-that-is-not-installed"))
	check("none", declared(t, folder)) // in the same folder: what is no longer declared is removed
}
