package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"toban.dev/internal/pause"
)

// CommandBeforeStop is the verb that the kubelet runs in the container before it tells the agent to stop.
const CommandBeforeStop = "before-stop"

const (
	// stopFile lies in the folder in memory when the agent is going to be told to stop.
	stopFile = "stops"
	// stopPatience is how long an exchange may take that has begun: longer than until the process is given back.
	stopPatience = giveBackAfter + 10*time.Second
)

// BeforeStop has no exchange begin any more, and waits for the end of one that has begun. A signal in an exchange would
// be lost, or end the process: execve(2) resets all handlers, and Go unblocks SIGTERM in each thread as it starts, long
// before a program can take it (runtime.minitSignalMask). Who stops writes its file and then looks for the handover;
// who hands over writes that and then looks for the file. So one of them sees the other.
func BeforeStop(ctx context.Context, run string) error {
	if err := os.WriteFile(filepath.Join(run, stopFile), nil, 0o600); err != nil {
		return fmt.Errorf("say that the agent is going to be told to stop: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for isThere(filepath.Join(run, handoverFile)) {
		if !pause.For(ctx, 10*time.Millisecond) {
			return errors.New("another program has not taken the agent's process over yet")
		}
	}
	return nil
}

// stops says that the agent is going to be told to stop.
func stops(run string) bool { return isThere(filepath.Join(run, stopFile)) }

// forgetExchange removes what an earlier container of the Pod has left.
func forgetExchange(run string) {
	for _, name := range []string{stopFile, handoverFile} {
		_ = os.Remove(filepath.Join(run, name)) // there mostly is none
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
