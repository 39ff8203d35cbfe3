package agent

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// reasonVolumeInUse is the reason of an instance that waits for its volume.
const reasonVolumeInUse = "VolumeInUse"

// own makes the volume this agent's own, and reads what it has to know from there. Until then it touches nothing on
// it, and tells the kubelet and the operator for whom it waits. To its peers it is absent: it does not know what it has promised.
func (a *Agent) own(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	group, life := errgroup.WithContext(ctx)
	answer := sync.OnceFunc(func() {
		for _, actor := range []func(context.Context) error{a.serveProbes, a.serveWaiting, a.identity.renewLoop} {
			group.Go(func() error { return actor(life) })
		}
	})
	err := a.open(life, func(whom string) {
		a.noteInUse(whom)
		answer()
	})
	end()
	if failed := group.Wait(); failed != nil {
		return failed
	}
	if a.Status().Reason == reasonVolumeInUse && err == nil {
		a.Log.Info("the volume is free", "volume", a.Volume)
		a.report(func(s *protocol.Status) { s.Reason, s.Message = reasonStarting, messageStarting })
	}
	return err
}

// noteInUse says that the volume is another's, and what to do.
func (a *Agent) noteInUse(whom string) {
	words := whom + " still works on the volume, mostly in a container of an earlier Pod. The instance starts when that has ended. " +
		"If it does not end: look for it on the nodes (crictl ps), and end it there, or switch that node off"
	a.Log.Warn("the volume is in use", "reason", reasonVolumeInUse, "message", words)
	a.report(func(s *protocol.Status) { s.Ready, s.Reason, s.Message = false, reasonVolumeInUse, words })
}

// open locks the volume, takes a restore over where that is due, and reads the memory.
func (a *Agent) open(ctx context.Context, waits func(whom string)) (err error) {
	if a.volume, err = OwnVolume(ctx, a.Volume, waits); err != nil {
		return err
	}
	state := filepath.Join(a.Volume, folderState)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the agent's folder on the volume: %w", err)
	}
	due, err := takeOverDue(a.Volume, a.Restored)
	if err != nil {
		return err
	}
	if due {
		restore, err := awaitLock(ctx, a.Volume, lockRestore, waits)
		if err != nil {
			return err
		}
		defer restore.release()
		if err := takeOver(a.Volume, a.Name, a.Restored); err != nil {
			return err
		}
	}
	if a.memory, err = openMemory(a.Name, state, a.server.Data()); err != nil {
		return err
	}
	a.memory.write = a.WriteFile
	return nil
}

// serveWaiting serves the operator, and nobody else, while the agent waits for its volume.
func (a *Agent) serveWaiting(ctx context.Context) error {
	mux := http.NewServeMux()
	status := func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Status()) }
	mux.Handle("GET "+protocol.PathStatus, only(naming.IdentityOperator, "the operator", status))
	mux.Handle("POST "+protocol.PathSync, only(naming.IdentityOperator, "the operator", a.handleSync))
	return a.serveMTLS(ctx, mux)
}
