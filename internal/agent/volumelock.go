package agent

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// reasonVolumeInUse is the reason of an instance that waits for its volume.
const reasonVolumeInUse = "VolumeInUse"

// lockVolume makes the volume this agent's own, and reads what it has to know from there. Until then it touches
// nothing on it, and tells the kubelet and the operator for whom it waits. To its peers it is absent: it does
// not know what it has promised.
func (a *Agent) lockVolume(ctx context.Context) error {
	if a.taking != nil {
		var err error
		a.lock, a.states, err = a.taking.takeVolume(a.options)
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	group, life := errgroup.WithContext(ctx)
	answer := sync.OnceFunc(func() {
		for _, actor := range []func(context.Context) error{
			a.probes.Serve, a.api.ServeWaiting, a.identity.Run, a.identity.Show,
		} {
			group.Go(func() error { return actor(life) })
		}
	})
	waits := func(whom string) {
		reportInUse(a.status, a.options.Log, whom)
		answer()
	}
	var err error
	a.lock, a.states, err = volume.Open(life, volume.Opening{
		Volume: a.options.Volume, WALVolume: a.options.WALVolume, Instance: a.options.Name,
		Before: func() error {
			if a.options.GiveUpOthers == nil {
				return nil
			}
			return a.options.GiveUpOthers(life, a.options.Volume, a.options.Upgraded, a.upgradedSystem(), waits)
		},
		Due: []volume.Due{
			{ID: a.options.Restored, Survivor: a.options.Survivor == a.options.Name}, {ID: a.options.Upgraded},
		},
		Waits: waits, Log: a.options.Log,
	})
	if err == nil && a.options.GiveUp != nil {
		err = a.options.GiveUp(life, a.options.Volume, waits)
	}
	end()
	if err == nil {
		a.states.WriteBy(a.options.WriteFile)
	}
	if failed := group.Wait(); failed != nil {
		return failed
	}
	if a.status.Get().Reason == reasonVolumeInUse && err == nil {
		a.options.Log.Info("the volume is free", "volume", a.options.Volume)
		a.status.Change(func(s *protocol.Status) { s.Reason, s.Message = reasonStarting, messageStarting })
	}
	return err
}

// upgradedSystem is the system identifier of the data of the upgrade that the instance belongs to, "" where the config
// is an older one and does not know it.
func (a *Agent) upgradedSystem() string {
	if config := a.configs.get(); config.Upgraded == a.options.Upgraded {
		return config.SystemIdentifier
	}
	return ""
}

// reportInUse says that the volume is another's, and what to do.
func reportInUse(board *status.Board, log *slog.Logger, whom string) {
	words := whom + " still works on the volume, mostly in a container of an earlier Pod. The instance starts when " +
		"that has ended. If it does not end: look for it on the nodes (crictl ps), and end it there, " +
		"or switch that node off"
	log.Warn("the volume is in use", "reason", reasonVolumeInUse, "message", words)
	board.Change(func(s *protocol.Status) { s.Ready, s.Reason, s.Message = false, reasonVolumeInUse, words })
}
