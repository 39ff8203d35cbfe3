package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"toban.dev/internal/archive/restore"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// inspectWorkers is how much of a database is looked through side by side at most.
const inspectWorkers = 4

// InspectOptions are all that is needed: no authority, no key and no store.
type InspectOptions struct {
	// Settings is the file with the settings, Volume the scratch volume.
	Settings, Volume string
	// Run is a folder in memory for the socket.
	Run string
	// Backup is the name of the backup in the archive, Termination the file for the result.
	Backup, Termination string
	Former
}

// Inspect looks through what Verify has restored and asks it the assertions, in the container of a verification that
// runs SQL. It leaves what was found before and now where the kubelet finds it, whatever came of it.
func Inspect(ctx context.Context, o InspectOptions) error {
	var result protocol.VerifyResult
	err := o.inspect(ctx, &result)
	result.Error = pod.Words(err)
	return errors.Join(err, leaveVerified(o.Termination, &result))
}

func (o InspectOptions) inspect(ctx context.Context, result *protocol.VerifyResult) error {
	text, err := os.ReadFile(filepath.Join(o.Volume, naming.FileVerified))
	if err != nil {
		return fmt.Errorf("read what was found before: %w", err)
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("understand what was found before: %w", err)
	}
	var settings protocol.BackupSettings
	if err := pod.ReadSettings(o.Settings, &settings); err != nil {
		return err
	}
	o.of(&settings)
	programs, err := postgres.FindPrograms(ctx, settings.Verify.Major)
	if err != nil {
		return err
	}
	options := Inspection(settings.Verify, programs, o.Run)
	options.Backup, options.Folder = o.Backup, ScratchFolder(o.Volume)
	report, err := restore.Inspect(ctx, options)
	recordReport(result, report)
	slog.New(slog.NewJSONHandler(os.Stdout, nil)).Info("inspected", "backup", o.Backup, "steps", result.Steps)
	return err
}

// Inspection is how what was restored is looked through, by the settings of a verification. Its folder is to be added.
func Inspection(v protocol.Verification, programs postgres.Programs, run string) restore.InspectOptions {
	options := restore.InspectOptions{
		Run: run, Programs: programs, Parameters: v.Parameters, Workers: min(inspectWorkers, runtime.GOMAXPROCS(0)),
		Log: os.Stderr,
	}
	for _, a := range v.Assertions {
		options.Assertions = append(options.Assertions, restore.Assertion(a))
	}
	return options
}
