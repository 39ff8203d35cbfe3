package major

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
)

// ErrRefused says that the upgrade would fail again in the same way.
var ErrRefused = errors.New("the data can't be upgraded")

// The steps of an upgrade.
const (
	StepRecover = "recover"
	StepCreate  = "create"
	StepCheck   = "check"
	StepUpgrade = "upgrade"
	StepFinish  = "finish"
)

// Options say what is upgraded, and how.
type Options struct {
	ID, Instance string
	// Volume is the instance's, Run a folder in memory with a short name, for sockets and settings.
	Volume, Run string
	// WALVolume is the one that pg_wal is on, "" where that is Volume.
	WALVolume string
	// Former and New are the programs of the two versions.
	Former, New postgres.Programs
	// Method is one of those of protocol, "" for the best.
	Method     string
	Parameters map[string]string
	// Jobs is how many processes work side by side.
	Jobs int
	// Log gets what the programs say.
	Log io.Writer
	// Waits is told whom is waited for until the volume is free; Step what is being done. Both may be nil.
	Waits, Step func(words string)
	// At, where it is set, is told every point that the work has passed. Tests end the process there.
	At func(point string)
}

func (o *Options) fill() {
	for _, f := range []*func(string){&o.Waits, &o.Step, &o.At} {
		if *f == nil {
			*f = func(string) {}
		}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Jobs = max(o.Jobs, 1)
}

// upgrade is one run.
type upgrade struct {
	Options
	old, new places
	result   protocol.UpgradeResult
	begins   ha.TermStart
	locks    []*volume.Lock
}

// places are a server's.
type places struct {
	programs postgres.Programs
	data     string
	// config is the folder with its settings.
	config string
}

func newUpgrade(o Options) *upgrade {
	o.fill()
	return &upgrade{
		Options: o,
		old:     places{o.Former, postgres.DataDirectory{Volume: o.Volume}.Path(), filepath.Join(o.Run, "former")},
		new: places{o.New, postgres.DataDirectory{Volume: volume.RestoreFolder(o.Volume)}.Path(),
			filepath.Join(o.Run, "new")},
		result: protocol.UpgradeResult{From: o.Former.Version, To: o.New.Version},
	}
}

// work is where the programs put what nobody needs afterwards.
func (u *upgrade) work() string { return filepath.Join(volume.RestoreFolder(u.Volume), "work") }

// Upgrade makes the data of the new version beside the old data, and notes on the volume that it is whole: the
// instance's next agent takes it over. No server and no agent may run there; it waits until they have ended. It may be
// cut off anywhere, and be called again. An ErrRefused would come again.
func Upgrade(ctx context.Context, o Options) (protocol.UpgradeResult, error) {
	u := newUpgrade(o)
	defer u.release()
	if err := u.lock(ctx); err != nil {
		return u.result, err
	}
	done, err := volume.ReadPrepared(u.Volume)
	if err != nil {
		return u.result, err
	}
	if done != nil && done.InPlace == u.ID && done.Upgrade != nil {
		return *done.Upgrade, nil
	}
	u.At("locked")
	if err := u.clearSockets(); err != nil {
		return u.result, err
	}
	if err := u.undo(ctx); err != nil { // what a run before this one has left
		return u.result, err
	}
	if err := u.steps(ctx); err != nil {
		return u.result, err
	}
	note := volume.Prepared{InPlace: u.ID, Begins: u.begins, Upgrade: &u.result}
	err = note.Write(u.Volume)
	u.At("noted")
	return u.result, err
}

// lock waits until nobody else works on the volume.
func (u *upgrade) lock(ctx context.Context) error {
	for _, take := range []func(context.Context, string, func(string)) (*volume.Lock, error){
		volume.Own, volume.OwnRestore,
	} {
		lock, err := take(ctx, u.Volume, u.Waits)
		if err != nil {
			return err
		}
		u.locks = append(u.locks, lock)
	}
	return nil
}

// release lets others work on the volume, when also the programs have ended that were started here.
func (u *upgrade) release() {
	for _, lock := range u.locks {
		lock.Release()
	}
}

func (u *upgrade) steps(ctx context.Context) error {
	for _, s := range []struct {
		name, words string
		do          func(context.Context) error
	}{
		{StepRecover, "looks whether the old data was shut down in order", u.recover},
		{StepCreate, "makes an empty server of the new version", u.create},
		{StepCheck, "chooses how the files get over", u.check},
		{StepUpgrade, "runs pg_upgrade", u.upgrade},
		{StepFinish, "writes the new data to disk", u.finish},
	} {
		u.Step(s.words)
		u.At(s.name)
		begin := time.Now()
		err := s.do(ctx)
		u.result.Steps = append(u.result.Steps,
			protocol.UpgradeStep{Name: s.name, Seconds: time.Since(begin).Seconds()})
		if err != nil {
			return fmt.Errorf("%s: %w", s.words, err)
		}
	}
	return nil
}

// finish removes what nobody needs, and sees what the new data is.
func (u *upgrade) finish(ctx context.Context) error {
	for _, path := range []string{u.work(), filepath.Join(u.new.data, "pg_upgrade_output.d")} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what pg_upgrade has left: %w", err)
		}
	}
	control, err := u.new.control(ctx)
	if err != nil {
		return err
	}
	if control["Database cluster state"] != stateShutDown {
		return fmt.Errorf("the new server did not stop in order: it is %q", control["Database cluster state"])
	}
	timeline, err := strconv.ParseUint(control["Latest checkpoint's TimeLineID"], 10, 32)
	if err != nil {
		return fmt.Errorf("see which timeline the new data is on: %w", err)
	}
	begin, err := firstWAL(filepath.Join(u.new.data, "pg_wal"))
	if err != nil {
		return err
	}
	u.begins = ha.TermStart{LSN: begin, Timeline: wal.Timeline(timeline)}
	u.result.SystemIdentifier = control["Database system identifier"]
	u.result.LSN, u.result.Timeline = begin.String(), uint32(timeline)
	u.At("finished")
	return errors.Join(postgres.SyncFileSystem(u.Volume), postgres.SyncData(u.new.data))
}

// statisticsSince is the version whose pg_upgrade brings the planner's statistics along.
const statisticsSince = 18

func (u *upgrade) readExtensions() error {
	text, err := os.ReadFile(filepath.Join(u.work(), "update_extensions.sql"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("see which extensions are to be updated: %w", err)
	}
	u.result.Extensions, u.result.More = bounded(extensionUpdates(string(text)))
	return nil
}

// mostObjects is how many names a result has at most.
const mostObjects = 20

func bounded(all []string) (first []string, more int) {
	if len(all) <= mostObjects {
		return all, 0
	}
	return all[:mostObjects], len(all) - mostObjects
}

// extensionUpdates are those that pg_upgrade's file names, each as "DATABASE: EXTENSION".
func extensionUpdates(text string) (all []string) {
	database := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, `\connect `); ok {
			if _, named, ok := strings.Cut(name, "dbname="); ok {
				name = strings.Trim(named, `"`)
			}
			database = strings.Trim(name, `"'`)
		}
		if name, ok := strings.CutPrefix(line, "ALTER EXTENSION "); ok {
			name, _, _ = strings.Cut(name, " UPDATE")
			all = append(all, database+": "+strings.Trim(name, `"`))
		}
	}
	return all
}
