//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shell is a user's: commands are typed as an article prints them, so they name no namespace. That is in a
// kubeconfig of the shell's own.
type shell struct {
	*story
	folder, kubeconfig string
}

func (s *story) shell() *shell {
	s.Helper()
	sh := &shell{story: s, folder: s.TempDir()}
	sh.kubeconfig = filepath.Join(sh.folder, "kubeconfig")
	must(s.T, os.WriteFile(sh.kubeconfig, []byte(s.run("config", "view", "--raw")), 0o600))
	sh.types("kubectl config set-context --current --namespace=" + string(s.Namespace))
	return sh
}

// file is one that the user has written.
func (sh *shell) file(path, text string) {
	sh.Helper()
	path = filepath.Join(sh.folder, path)
	must(sh.T, os.MkdirAll(filepath.Dir(path), 0o755))
	must(sh.T, os.WriteFile(path, []byte(text), 0o600))
}

// try types a command and returns what it prints.
func (sh *shell) try(command string) (string, error) {
	c := sh.bash("-c", command)
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// bash is a program that reads commands, in the user's folder and with the user's kubeconfig.
func (sh *shell) bash(args ...string) *exec.Cmd {
	c := exec.CommandContext(sh.ctx, "bash", args...)
	c.Dir = sh.folder
	c.Env = append(os.Environ(), "KUBECONFIG="+sh.kubeconfig, "LC_ALL=C.UTF-8")
	return c
}

// types is a command that must succeed.
func (sh *shell) types(command string) string {
	sh.Helper()
	out, err := sh.try(command)
	must(sh.T, err)
	return out
}
