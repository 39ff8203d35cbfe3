package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"toban.dev/internal/initjob"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// initPatience is how long the init Job waits for a primary: longer than a slow
// volume and a slow image take together.
const initPatience = 10 * time.Minute

// maxTermination is what the kubelet keeps of a termination message (bytes).
const maxTermination = 4096

type initOptions struct {
	plan, authority, app, termination string
	port                              uint16
	patience                          time.Duration
}

// Init is the verb of the init Job.
func Init() *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use:   "init",
		Short: "Set up the database of a new SampleDB (the init Job's own command)",
		Long: "Makes the application's role, database and extensions and runs the first SQL, each exactly once.\n" +
			"The init Job runs it; a person has no need to.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.plan, "plan", filepath.Join(naming.PathConfig, naming.KeyInit), "file with what to do")
	f.StringVar(&o.authority, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
	f.StringVar(&o.app, "app", naming.PathApp, "folder with the application's credentials")
	f.StringVar(&o.termination, "termination-log", "/dev/termination-log", "file for the result")
	f.Uint16Var(&o.port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	f.DurationVar(&o.patience, "patience", initPatience, "how long to wait for an instance that takes writes")
	return c
}

// run does the work and leaves its result where the kubelet finds it, whatever came of it.
func (o initOptions) run(ctx context.Context) error {
	work := o.work(ctx)
	if err := writeResult(o.termination, initjob.Report(work)); err != nil && work == nil {
		return err
	}
	return work
}

func (o initOptions) work(ctx context.Context) error {
	text, err := os.ReadFile(o.plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var plan initjob.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("understand the plan %s: %w", o.plan, err)
	}
	config, err := initTLS(o.authority)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(o.app, naming.KeyPassword))
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	job := initjob.Job{
		Plan:     plan,
		Port:     o.port,
		TLS:      config,
		Password: string(password),
		Patience: o.patience,
		Log:      slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	return job.Run(ctx)
}

// initTLS shows certificates of the SampleDB's own authority.
func initTLS(folder string) (*tls.Config, error) {
	own, err := newIssuer(folder, naming.IdentityInit)
	if err != nil {
		return nil, err
	}
	return pki.ClientTLS(own.certificate, own.roots, naming.IdentityInstance), nil
}

// writeResult keeps the message short enough for the kubelet to leave the JSON whole.
func writeResult(path string, result initjob.Result) error {
	const room = maxTermination - 256 // for the JSON around it
	text, err := json.Marshal(result)
	for err == nil && len(text) > maxTermination {
		runes := []rune(result.Message)
		if len(runes) == 0 {
			break
		}
		result.Message = string(runes[:min(len(runes)*3/4, room)]) + "…"
		text, err = json.Marshal(result)
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // the kubelet reads it
		return fmt.Errorf("leave the result: %w", err)
	}
	return nil
}
