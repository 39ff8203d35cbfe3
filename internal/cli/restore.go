package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"toban.dev/internal/agent"
	"toban.dev/internal/backup"
	"toban.dev/internal/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

type restoreOptions struct {
	settings, authority, source, key, run, volume, termination, address, listen string
}

// Restore is `toban backup restore`: the process in the Pod that brings the data of a new SampleDB back.
func Restore() *cobra.Command {
	var o restoreOptions
	c := &cobra.Command{
		Use:    "restore",
		Short:  "Restore a database into an instance's volume (in the Pod of a restore)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return o.work(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.settings, "settings", filepath.Join(naming.PathRestore, naming.KeyRestore), "file with the settings")
	f.StringVar(&o.authority, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
	f.StringVar(&o.source, "source", naming.PathSource, "folder with the authority of the SampleDB whose volume is read")
	f.StringVar(&o.key, "key", naming.PathKey, "folder with the key of the archive")
	f.StringVar(&o.run, "run", naming.PathRun, "folder in memory for the socket and keys")
	f.StringVar(&o.volume, "volume", naming.PathVolume, "the instance's volume")
	f.StringVar(&o.address, "address", os.Getenv("POD_IP"), "address that the operator reaches this Pod by")
	f.StringVar(&o.termination, "termination-log", "/dev/termination-log", "file for the result")
	f.StringVar(&o.listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to tell the operator how far it is")
	return c
}

// work restores, and leaves the result where the kubelet finds it, whatever came of it.
func (o restoreOptions) work(ctx context.Context) error {
	r := &restore{restoreOptions: o, log: slog.New(slog.NewJSONHandler(os.Stdout, nil))}
	err := r.do(ctx)
	if err != nil {
		r.result.Error = err.Error()
	}
	return errors.Join(err, leave(o.termination, &r.result, &r.result.Error))
}

// restore is one run.
type restore struct {
	restoreOptions
	settings protocol.RestoreSettings
	progress progressServer
	result   protocol.RestoreResult
	log      *slog.Logger
}

// restored is what is noted on the volume when the data is whole, before it gets its place.
type restored struct {
	Begins ha.Start               `json:"begins"`
	Result protocol.RestoreResult `json:"result"`
}

// The places on the volume while it is restored. What is half done begins anew.
func (r *restore) folder() string      { return filepath.Join(r.volume, "restore") }
func (r *restore) note() string        { return filepath.Join(r.volume, "restored.json") }
func (r *restore) tablespaces() string { return filepath.Join(r.volume, "tablespaces") }

func (r *restore) do(ctx context.Context) error {
	text, err := os.ReadFile(r.restoreOptions.settings)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	if err := json.Unmarshal(text, &r.settings); err != nil {
		return fmt.Errorf("understand the settings %s: %w", r.restoreOptions.settings, err)
	}
	own, err := newIssuer(r.authority, naming.IdentityRestore, r.address)
	if err != nil {
		return err
	}
	r.progress.set(protocol.BackupProgress{Step: "looks at the volume"})
	stop, _, err := r.progress.serve(ctx, own, r.settings.Operator, r.listen)
	if err != nil {
		return err
	}
	defer stop()
	return r.steps(ctx)
}

// steps goes on where a Pod before has left off.
func (r *restore) steps(ctx context.Context) error {
	done, err := r.readNote()
	if err != nil {
		return err
	}
	if done == nil {
		server := &postgres.Server{Volume: r.volume}
		present, err := server.HasData()
		if err != nil {
			return err
		}
		if r.result.Kept = present; present {
			r.log.Info("the volume has a database already: it is left as it is")
			return nil
		}
		if done, err = r.restore(ctx); err != nil {
			return err
		}
	}
	r.result = done.Result
	r.progress.step("gives the data its place")
	data := (&postgres.Server{Volume: r.folder()}).Data()
	if err := agent.Adopt(r.volume, r.settings.Instance, data, done.Begins); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(r.folder()), os.Remove(r.note()))
}

// readNote is what a Pod before has noted, nil for nothing.
func (r *restore) readNote() (*restored, error) {
	text, err := os.ReadFile(r.note())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing has been restored yet
	}
	var done restored
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	if err != nil {
		return nil, fmt.Errorf("see what has been restored: %w", err)
	}
	return &done, nil
}

// restore makes the data beside its place, and notes on the volume that it is whole.
func (r *restore) restore(ctx context.Context) (*restored, error) {
	for _, folder := range []string{r.folder(), r.tablespaces()} {
		if err := os.RemoveAll(folder); err != nil {
			return nil, fmt.Errorf("remove what a restore before has left: %w", err)
		}
	}
	if err := os.MkdirAll(r.folder(), 0o700); err != nil {
		return nil, fmt.Errorf("make room for the data: %w", err)
	}
	options, err := r.options(ctx)
	if err != nil {
		return nil, err
	}
	out, err := backup.Restore(ctx, options)
	if err != nil {
		return nil, err
	}
	done := &restored{Begins: out.Begins, Result: r.result}
	done.Result.LSN, done.Result.Commit = out.Reached.LSN.String(), out.Reached.Commit
	done.Result.WAL = uint64(out.Reached.LSN - min(out.Reached.LSN, out.Choice.Backup.StartLSN))
	r.log.Info("the data is restored", "lsn", done.Result.LSN, "lastTransaction", done.Result.Commit, "timeline", out.Begins.Timeline)
	text, err := json.Marshal(done)
	if err != nil {
		return nil, err
	}
	return done, postgres.WriteFile(r.note(), text, 0o600)
}

func (r *restore) options(ctx context.Context) (backup.RestoreOptions, error) {
	s := r.settings
	r.progress.step("opens the archive")
	programs, err := postgres.FindPrograms(ctx, s.Major)
	if err != nil {
		return backup.RestoreOptions{}, err
	}
	whole, err := r.open(ctx)
	if err != nil {
		return backup.RestoreOptions{}, err
	}
	opener, err := openerOf(s.Encrypted, r.key)
	if err != nil {
		return backup.RestoreOptions{}, err
	}
	target, err := restoreTarget(s.Target)
	if err != nil {
		return backup.RestoreOptions{}, err
	}
	return backup.RestoreOptions{
		Bucket: bucket.Sub(whole, s.Path), Opener: opener,
		Wanted: backup.Wanted{Target: target, Backup: s.Backup, Now: time.Now()},
		Folder: r.folder(), Run: r.run, Tablespaces: r.tablespaces(), Programs: programs, Parameters: s.Parameters,
		Workers: min(takeWorkers, runtime.GOMAXPROCS(0)), Log: os.Stderr, Chosen: r.chosen, Progress: r.tell,
	}, nil
}

// open opens the store. To the server of a volume it shows a certificate of the authority of the SampleDB whose volume it is.
func (r *restore) open(ctx context.Context) (bucket.Bucket, error) {
	config := r.settings.Bucket
	if config.Volume != nil {
		source, err := newIssuer(r.source, naming.IdentityRestore)
		if err != nil {
			return nil, err
		}
		if config, err = storeConfig(config, source, r.run); err != nil {
			return nil, err
		}
	}
	return bucket.Open(ctx, config)
}

// errKey says that the key of an archive is of no use.
var errKey = errors.New("the key of the archive")

// openerOf opens what is not encrypted, or what is with the key in a folder.
func openerOf(encrypted bool, folder string) (*backup.Opener, error) {
	if !encrypted {
		return backup.NewOpener("")
	}
	text, err := os.ReadFile(filepath.Join(folder, naming.KeyAge))
	if err != nil {
		return nil, fmt.Errorf("%w: the Secret that encryption.key names, or its %s, is not there: %w", errKey, naming.KeyAge, err)
	}
	opener, err := backup.NewOpener(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKey, err)
	}
	return opener, nil
}

func restoreTarget(t protocol.RestoreTarget) (backup.Target, error) {
	out := backup.Target{Time: t.Time, XID: t.Transaction, Name: t.Name, Immediate: t.Immediate, Exclusive: t.Exclusive}
	if t.LSN == "" {
		return out, nil
	}
	lsn, err := ha.ParseLSN(t.LSN)
	if err != nil {
		return out, fmt.Errorf("understand the target: %w", err)
	}
	out.LSN = lsn
	return out, nil
}

// chosen tells from what it is restored.
func (r *restore) chosen(c backup.Choice) {
	r.result.Backup, r.result.Bytes = c.Backup.ID, c.Backup.RawBytes
	r.log.Info("restores", "backup", c.Backup.ID, "from", c.Backup.StartLSN.String(), "to", r.settings.Target,
		"windowFrom", c.Window.From.String(), "windowTo", c.Window.To.String())
}

// tell says how far a step is.
func (r *restore) tell(step string, p backup.Progress) {
	words := map[string]string{backup.StepUnpack: "fetches backup " + r.result.Backup, backup.StepRecover: "replays WAL"}
	r.progress.set(protocol.BackupProgress{Step: cmp.Or(words[step], step), Done: p.Done, Total: p.Total, Rate: int64(p.Rate)})
}

// Refused says that a command would fail again in the same way: its exit code is naming.ExitRefused.
func Refused(err error) bool {
	var object *backup.ObjectError
	var short *backup.ShortError
	var stuck *backup.StuckError
	return errors.Is(err, backup.ErrOutside) || errors.Is(err, errKey) || errors.Is(err, postgres.ErrNoPrograms) ||
		errors.As(err, &object) || errors.As(err, &short) || errors.As(err, &stuck)
}
