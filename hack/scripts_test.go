package hack

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sandbox is a folder with the scripts of this one in hack/, and with programs by their paths, that scripts call.
func sandbox(t *testing.T, programs map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	scripts, err := filepath.Glob("*.sh")
	if err != nil || len(scripts) < 15 {
		t.Fatalf("the scripts are %q, %v", scripts, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "hack", script), string(text))
	}
	for path, text := range programs {
		write(t, filepath.Join(folder, path), "#!/bin/sh\n"+text+"\n")
	}
	return folder
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// runs runs a script of a sandbox, with programs of its folder bin before others, and returns what it says and its exit
// code.
func runs(t *testing.T, folder string, env []string, script string, args ...string) (said string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(folder, "hack", script), args...)
	c.Env = append(os.Environ(), "PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	c.Env = append(c.Env, env...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("hack/%s: %v", script, err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// A script that wants a cluster of its own fails where one is up, unless it may be left out; it touches nothing.
func TestScriptsThatTryNothingFail(t *testing.T) {
	const touched = "it touches something"
	status := func(cluster string) string {
		return `[ "$1" = status ] || { echo ` + touched + `; exit 9; }
printf '{\n  "cluster": "` + cluster + `",\n  "nodes": 3\n}\n'`
	}
	leaveOut := []string{"TOBAN_LEAVE_OUT_OWN_CLUSTER=yes"}
	for name, c := range map[string]struct {
		localkube string
		env       []string
		code      int
		says      string
	}{
		"one is up":                         {status("up"), nil, 1, "is up here. For that: make down"},
		"one is half there":                 {status("partial"), nil, 1, "is partial here. For that: make down"},
		"one is up, and it may be left out": {status("up"), leaveOut, 77, "NOT TRIED: "},
		"it is not known":                   {"echo '{}'", nil, 1, "NOT TRIED: "},
		"localkube fails":                   {"exit 3", leaveOut, 3, ""},
	} {
		for _, ring := range []string{"lifecycle", "installs"} {
			folder := sandbox(t, map[string]string{
				"bin/localkube": c.localkube, "bin/go": `[ "$1" = env ] || { echo ` + touched + `; exit 9; }`,
			})
			said, code := runs(t, folder, c.env, "owncluster.sh", ring)
			if code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, touched) {
				t.Errorf("%s, and %s ends with %d, and says %q", name, ring, code, said)
			}
		}
	}
}

func TestALookForVulnerabilitiesThatLooksAtNothingFails(t *testing.T) {
	folder := sandbox(t, map[string]string{"bin/curl": "echo no route; exit 7", "bin/go": "exit 9"})
	for name, c := range map[string]struct {
		env  []string
		code int
	}{
		"the database is away":                      {nil, 1},
		"the database is away, and may be left out": {[]string{"TOBAN_LEAVE_OUT_VULNERABILITIES=yes"}, 0},
	} {
		said, code := runs(t, folder, c.env, "govulncheck.sh")
		if code != c.code || !strings.Contains(said, "NOT LOOKED FOR VULNERABILITIES: ") ||
			!strings.Contains(said, "no route") {
			t.Errorf("%s: it ends with %d, and says %q", name, code, said)
		}
	}
}
