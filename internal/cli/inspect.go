package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"toban.dev/internal/backup"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// inspectOptions are all that is needed: no authority, no key and no store.
// inspectWorkers is how much of a database is looked through side by side at most.
const inspectWorkers = 4

type inspectOptions struct{ settings, volume, run, backup, termination string }

// Inspect is `toban backup inspect`: the process in the container of a verification that runs SQL.
func Inspect() *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:    "inspect",
		Short:  "Look through what `toban backup verify` has restored, and ask it the assertions",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return o.work(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.settings, "settings", filepath.Join(naming.PathBackup, naming.KeyBackup), "file with the settings")
	f.StringVar(&o.volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.run, "run", naming.PathRun, "folder in memory for the socket")
	f.StringVar(&o.backup, "backup", "", "name of the backup in the archive")
	f.StringVar(&o.termination, "termination-log", "/dev/termination-log", "file for the result")
	return c
}

// work leaves what was found before and now where the kubelet finds it, whatever came of it.
func (o inspectOptions) work(ctx context.Context) error {
	var result protocol.VerifyResult
	err := o.inspect(ctx, &result)
	if err != nil {
		result.Error = err.Error()
	}
	return errors.Join(err, leaveVerified(o.termination, &result))
}

func (o inspectOptions) inspect(ctx context.Context, result *protocol.VerifyResult) error {
	text, err := os.ReadFile(filepath.Join(o.volume, naming.FileVerified))
	if err != nil {
		return fmt.Errorf("read what was found before: %w", err)
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("understand what was found before: %w", err)
	}
	var settings protocol.BackupSettings
	if err := readSettings(o.settings, &settings); err != nil {
		return err
	}
	programs, err := postgres.FindPrograms(ctx, settings.Verify.Major)
	if err != nil {
		return err
	}
	options := backup.InspectOptions{
		Backup: o.backup, Folder: scratchFolder(o.volume), Run: o.run, Programs: programs,
		Parameters: settings.Verify.Parameters, Workers: min(inspectWorkers, runtime.GOMAXPROCS(0)), Log: os.Stderr,
	}
	for _, a := range settings.Verify.Assertions {
		options.Assertions = append(options.Assertions, backup.Assertion(a))
	}
	report, err := backup.Inspect(ctx, options)
	recordReport(result, report)
	slog.New(slog.NewJSONHandler(os.Stdout, nil)).Info("inspected", "backup", o.backup, "steps", result.Steps)
	return err
}
