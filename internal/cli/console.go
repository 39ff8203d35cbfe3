package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/console"
)

type consoleOptions struct {
	cluster.Cluster
	all, write, open bool
	port             uint16
	version          string
}

// Console is `toban console`: a web console on the user's own machine.
func Console(version string) *cobra.Command {
	o := consoleOptions{version: version}
	c := &cobra.Command{
		Use:   "console [NAME]",
		Short: "Show SampleDBs in a browser, live: who leads, what is wrong, what can be restored",
		Long: "Starts a web server on this machine, which only programs on this machine can reach, and prints a\n" +
			"URL with a secret token in it. The console asks Kubernetes with your own rights, and runs until\n" +
			"Ctrl-C. Nothing runs in the cluster. It only reads, unless --write is given; then it can switch over,\n" +
			"take a backup and restart servers, each after you have typed the name of the SampleDB. While the page\n" +
			"of a SampleDB is open, the primary is asked by psql in its Pod how far its standbys are: that takes\n" +
			"the right to create pods/exec. Without it, everything else is shown.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return o.run(c, name)
		},
	}
	f := c.Flags()
	o.Reach(f)
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "show the SampleDBs of all namespaces")
	f.Uint16Var(&o.port, "port", 0, "port to listen on (default: a free one)")
	f.BoolVar(&o.write, "write", false, "allow to switch over, to take a backup and to restart servers")
	f.BoolVar(&o.open, "open", true, "open a browser")
	c.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	return c
}

func (o *consoleOptions) run(c *cobra.Command, name string) error {
	if name != "" && o.all {
		return errors.New("NAME is of one namespace: give --namespace, or leave --all-namespaces out")
	}
	api, err := o.ConnectWatching()
	if err != nil {
		return err
	}
	shown := o.Namespace
	if o.all {
		shown = ""
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("listen on port %d of 127.0.0.1: %w; another port: --port", o.port, err)
	}
	defer listener.Close()
	server := console.New(listener, console.Options{API: api, Verbs: called.at(o.Cluster), Namespace: shown,
		Write: o.write, Flags: o.SameCluster(), Version: o.version})
	page := ""
	if name != "" {
		page = "#/" + url.PathEscape(o.Namespace) + "/" + url.PathEscape(name)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s%s\nThe URL is a secret: who has it, and is on this machine, has your rights. "+
		"To end the console: Ctrl-C\n", server.URL(), page)
	if o.open {
		openBrowser(c.ErrOrStderr(), server.OnceURL()+page)
	}
	return server.Serve(c.Context(), listener) //nolint:wrapcheck // it says what it does
}

// openBrowser opens a URL, where there is a screen. The URL is seen by everybody who can list processes.
func openBrowser(trouble io.Writer, where string) {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if cmp.Or(os.Getenv("DISPLAY"), os.Getenv("WAYLAND_DISPLAY")) == "" {
			return
		}
	}
	browser := exec.Command(program[0], append(program[1:], where)...)
	if err := browser.Start(); err != nil {
		fmt.Fprintln(trouble, "no browser could be opened; open the URL yourself:", err)
		return
	}
	go func() { _ = browser.Wait() }() // what becomes of the browser is the user's
}
