package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/major"
	"toban.dev/internal/work/pod"
)

// Options are what an upgrade is told.
type Options struct {
	pod.Options
	// Former is the folder with the programs of the former version, Volume the instance's volume.
	Former, Volume string
	// WALVolume is the one that the instance's WAL is on, "" where that is Volume.
	WALVolume string
}

// CollectOptions are all that the collecting of programs needs.
type CollectOptions struct {
	// Major is the version of the programs, To the folder that gets them.
	Major int
	To    string
	// Termination is the file for the error.
	Termination string
}

// Collect copies the programs of the image that it runs in for an upgrade in another image. Where it can't, it leaves
// an UpgradeResult that says why.
func Collect(ctx context.Context, o CollectOptions) error {
	programs, err := postgres.FindPrograms(ctx, o.Major)
	if err == nil {
		_, err = former.Collect(ctx, former.Source{Programs: programs}, o.To)
	}
	if err == nil {
		return nil
	}
	result := protocol.UpgradeResult{Error: err.Error()}
	return errors.Join(err, pod.Leave(o.Termination, &result, &result.Error))
}

// Run moves the data of an instance to another major version, beside the old data, when the operator says that no
// instance runs, and leaves the result where the kubelet finds it, whatever came of it.
func Run(ctx context.Context, o Options) error {
	u := newUpgrade(o)
	err := u.do(ctx)
	u.result.Error = pod.Words(err)
	fitUpgrade(&u.result)
	return errors.Join(err, pod.Leave(o.Termination, &u.result, &u.result.Error))
}

// fitUpgrade leaves out extensions that a termination message has no room for, and counts them.
func fitUpgrade(result *protocol.UpgradeResult) {
	dropOne := pod.Drop(&result.Extensions, 0)
	pod.Fit(result, pod.MaxTermination/2, func() bool {
		dropped := dropOne()
		if dropped {
			result.More++
		}
		return dropped
	})
}

// upgradeRun is one run. It begins when the operator says that no instance runs any more.
type upgradeRun struct {
	pod.Awaiting
	former, volume, walVolume string
	settings                  protocol.UpgradeSettings
	result                    protocol.UpgradeResult
}

func newUpgrade(o Options) *upgradeRun {
	u := &upgradeRun{
		Awaiting: pod.Awaiting{Pod: pod.New(o.Options)},
		former:   o.Former, volume: o.Volume, walVolume: o.WALVolume,
	}
	u.Await(func(id string) string {
		if id == u.settings.ID {
			return ""
		}
		return fmt.Sprintf("this is the Pod of the upgrade %q", u.settings.ID)
	}, func(p protocol.BackupProgress) bool { return p.Upgrade != nil })
	return u
}

func (u *upgradeRun) do(ctx context.Context) error {
	u.Progress.Step("looks at the programs")
	stop, err := u.Begin(ctx, naming.IdentityUpgrade, &u.settings, &u.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	options, err := u.options(ctx)
	if err != nil {
		return err
	}
	if err := u.AwaitBegin(ctx); err != nil {
		return err
	}
	u.Progress.Step("begins")
	u.result, err = major.Upgrade(ctx, options)
	if err != nil {
		return err
	}
	u.Log.Info("the data is upgraded", "from", u.result.From, "to", u.result.To, "method", u.result.Method,
		"steps", u.result.Steps)
	result := u.result
	fitUpgrade(&result)
	u.Tell(ctx, protocol.BackupProgress{Step: "the data is upgraded", Upgrade: &result})
	return nil
}

// options find the programs of both versions.
func (u *upgradeRun) options(ctx context.Context) (major.Options, error) {
	s := u.settings
	programs, err := postgres.FindPrograms(ctx, s.To)
	if err != nil {
		return major.Options{}, err
	}
	_, old, err := former.Open(u.former)
	if err != nil {
		return major.Options{}, err
	}
	if old.Major != s.From {
		return major.Options{}, fmt.Errorf("%w: the programs that were collected are of version %d, and not of %d",
			former.ErrImage, old.Major, s.From)
	}
	return major.Options{
		ID: s.ID, Instance: s.Instance, Volume: u.volume, WALVolume: u.walVolume, Run: u.Run, Former: old,
		New: programs, Method: s.Method, Parameters: s.Parameters, Jobs: runtime.GOMAXPROCS(0), Log: os.Stderr,
		Waits: u.WaitsForVolume, Step: u.Says,
	}, nil
}

// Back gives the old data of an instance back, as it was before an upgrade.
func Back(ctx context.Context, o Options) error {
	u := newUpgrade(o)
	result, err := u.back(ctx)
	result.Error = pod.Words(err)
	return errors.Join(err, pod.Leave(o.Termination, &result, &result.Error))
}

func (u *upgradeRun) back(ctx context.Context) (protocol.UpgradeBack, error) {
	u.Progress.Step("gives the old data back")
	stop, err := u.Begin(ctx, naming.IdentityUpgrade, &u.settings, &u.settings.Operator)
	if err != nil {
		return protocol.UpgradeBack{}, err
	}
	defer stop()
	return major.Back(ctx, major.Options{
		ID: u.settings.ID, Instance: u.settings.Instance, Volume: u.volume, Run: u.Run,
		Former: postgres.Programs{Major: u.settings.From}, New: postgres.Programs{Major: u.settings.To},
		Log: os.Stderr, Waits: u.WaitsForVolume, Step: u.Says,
	})
}
