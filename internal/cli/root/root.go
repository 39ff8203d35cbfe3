package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// completes is what kubectl calls to complete the words of its plugin kubectl-toban (kubectl 1.26 and later).
const completes = "kubectl_complete-toban"

// New is the command, with verbs.
func New(version string, verbs ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "toban",
		Short:         "Toban keeps PostgreSQL on duty in Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(verbs...)
	return root
}

// Plugin has the command call itself by the name of kubectl's plugin.
func Plugin(root *cobra.Command) *cobra.Command {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl toban"}
	return root
}

// IsPlugin says that a program is called by a name that makes it a plugin of kubectl, or what completes its words.
func IsPlugin(program string) bool { return strings.HasPrefix(filepath.Base(program), "kubectl") }

// ExitError is that a program in a Pod has ended with an exit code, after it has said why itself.
type ExitError struct{ Code int }

// Error says which code it is.
func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Run runs a command with the program's arguments. It has said why it failed; exit is the code for that. All that it
// and its verbs print is Escaped.
func Run(ctx context.Context, root *cobra.Command, exit func(error) int) int {
	out, said := &escaped{to: root.OutOrStdout()}, &escaped{to: root.ErrOrStderr()}
	root.SetOut(out)
	root.SetErr(said)
	defer said.end()
	defer out.end()
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == completes {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var ended *ExitError
	if errors.As(err, &ended) {
		return ended.Code // the program has said why
	}
	fmt.Fprintln(said, "toban:", err)
	return exit(err)
}
