package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/kube"
	"toban.dev/internal/agent/program"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
)

// Agent is `toban agent`: the process with id 1 in an instance's Pod.
func Agent() *cobra.Command {
	var options agent.Options
	var terminationLog string
	var rehearse bool
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run one PostgreSQL instance (in its Pod, as process 1)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rehearse {
				return rehearseAgent(cmd, options)
			}
			err := runAgent(cmd.Context(), options)
			if err != nil {
				// The kubelet shows this as the container's message; a failure to write it hides nothing.
				_ = os.WriteFile(terminationLog, []byte(err.Error()), 0o600)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Name, "name", os.Getenv("POD_NAME"), "name of the instance")
	flags.StringVar(&options.Address, "address", os.Getenv("POD_IP"), "address that others reach this instance by")
	flags.StringVar(&options.Listen, "listen", "", "address to listen on (all where it is empty)")
	flags.StringVar(&options.ConfigFile, "config", filepath.Join(naming.PathConfig, naming.KeyConfig),
		"file with the agent's config")
	flags.StringVar(&options.Authority, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
	flags.StringVar(&options.Certificate, "certificate", naming.PathCertificate,
		"folder with the certificate for clients that the user gives")
	flags.StringVar(&options.Volume, "volume", naming.PathVolume, "the persistent volume")
	walVolumeFlag(flags, &options.WALVolume)
	flags.StringVar(&options.Restored, "restored", os.Getenv(naming.EnvRestored),
		"id of the restore in place whose data the instance must have")
	flags.StringVar(&options.Survivor, "survivor", os.Getenv(naming.EnvSurvivor),
		"instance that goes on with its own data as that of the restore")
	flags.StringVar(&options.Upgraded, "upgraded", os.Getenv(naming.EnvUpgraded),
		"id of the upgrade to another major version whose data the instance must have")
	flags.StringVar(&options.Run, "run", naming.PathRun, "folder in memory for the socket and keys")
	flags.StringVar(&options.Programs, "programs", filepath.Join(os.TempDir(), "toban-programs"),
		"folder for programs that the operator gives the agent to go on as")
	flags.BoolVar(&rehearse, "rehearse", false, "only say whether this program could take an agent's process over")
	flags.StringVar(&terminationLog, "termination-log", "/dev/termination-log", "file that takes the last words")
	return cmd
}

// runAgent runs the agent. This goroutine's thread, the first of the process, meanwhile starts postmasters: they are
// its children also after another program has taken the process over.
func runAgent(ctx context.Context, options agent.Options) (err error) {
	postgres.PostmastersParent.Serve(func() { err = runAgentAside(ctx, options) })
	return err
}

func rehearseAgent(cmd *cobra.Command, options agent.Options) error {
	if err := agent.Rehearse(cmd.Context(), options, os.Getenv(agent.EnvFormat)); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), program.Rehearsed)
	return nil
}

// Guard is what an agent runs beside a primary that another program takes over.
func Guard() *cobra.Command {
	return &cobra.Command{
		Use: agent.CommandGuard, Short: "End a server unless its agent goes on in time",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return agent.Guard(cmd.Context(), os.Stdin, os.Stdout) },
	}
}

// BeforeStop is what the kubelet runs in the container before it tells the agent to stop.
func BeforeStop() *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use: agent.CommandBeforeStop, Short: "Wait until the agent can be told to stop",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return agent.BeforeStop(cmd.Context(), run) },
	}
	cmd.Flags().StringVar(&run, "run", naming.PathRun, "the agent's folder in memory")
	return cmd
}

// agentProcessors is how many processors an agent uses at a time. It mostly waits, and with more than one the threads
// that look for work cost more than the work.
const agentProcessors = 1

func runAgentAside(ctx context.Context, options agent.Options) error {
	runtime.GOMAXPROCS(agentProcessors)
	pause.Align()
	options.Log = slog.New(slog.NewJSONHandler(os.Stdout, nil))
	options.ServerLog = os.Stderr
	options.Annexes = agentAnnexes
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		cluster, err := kube.InPod(namespace, options.Name, naming.ClusterOf(options.Name))
		if err != nil {
			return err
		}
		options.Cluster = cluster
	}
	for _, a := range annexWork {
		if a.agent != nil {
			a.agent(&options)
		}
	}
	a, err := agent.New(ctx, options)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// Install is `toban install FILE`: it copies this program to where the agent's
// container finds it, so that the PostgreSQL image needs nothing of ours.
func Install() *cobra.Command {
	return &cobra.Command{
		Use:   "install FILE",
		Short: "Copy this program to FILE",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return install(args[0]) },
	}
}

func install(target string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	in, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // a program is executable
	if err != nil {
		return fmt.Errorf("make %s: %w", target, err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy this program to %s: %w", target, err)
	}
	return nil
}
