package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// letGoInterval is how often a server that stops is looked at, for sessions that can't end.
const letGoInterval = 2 * time.Second

// Stop stops the server and waits for it. When ctx ends before it has stopped,
// it is stopped immediately, and then killed.
func (p *Process) Stop(ctx context.Context, mode StopMode) {
	for _, step := range []struct {
		signal  syscall.Signal
		context context.Context //nolint:containedctx // the deadline of this step
	}{{syscall.Signal(mode), ctx}, {syscall.Signal(StopImmediate), nil}, {syscall.SIGKILL, nil}} {
		wait := step.context
		if wait == nil {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
		}
		_ = p.process.Signal(step.signal) // it may have ended: then Done tells
		if p.hasEnded(wait, step.signal == syscall.Signal(StopFast)) {
			return
		}
	}
	<-p.done
}

// hasEnded waits for the end of the server, until ctx ends. Where it stops fast, sessions are let go that can't end.
func (p *Process) hasEnded(ctx context.Context, fast bool) bool {
	look := time.NewTicker(letGoInterval)
	defer look.Stop()
	var left forgotten
	for {
		select {
		case <-p.done:
			return true
		case <-ctx.Done():
			return false
		case <-look.C:
			if !fast {
				continue
			}
			_ = p.letGo() // the server stops later then, or is stopped at once when ctx ends
			if left.waitsForEver(p.process.Pid) {
				return false
			}
		}
	}
}

// letGo lets sessions end that wait for standbys that are gone. A session that ends removes its temporary tables, and
// waits for standbys as for any commit. A fast stop takes no such wait back: the signal to end is ignored by whoever
// ends already (die in postgres.c, PostgreSQL 15 to 18), and no standby can connect any more. So the server would not
// stop. It is the checkpointer that lets them go, when it reads that no standby is to be waited for
// (SyncRepUpdateSyncStandbysDefined in syncrep.c).
//
// Nobody is told of a commit that no standby has: a session that was waiting with a client has taken the signal to end,
// after which it tells its client nothing (SyncRepWaitForLSN). Those that have not taken it yet are waited for. The
// next start has the file written anew.
func (p *Process) letGo() error {
	pids, err := children(p.process.Pid)
	if err != nil {
		return err
	}
	checkpointer, waits := 0, false
	for _, pid := range pids {
		switch name := title(pid); {
		case isCheckpointer(name):
			checkpointer = pid
		case waitsForStandbys(name) && isPending(pid, syscall.SIGTERM):
			return nil
		case waitsForStandbys(name):
			waits = true
		}
	}
	if checkpointer == 0 || !waits {
		return nil
	}
	if err := p.server.waitForNoStandby(); err != nil {
		return err
	}
	if err := syscall.Kill(checkpointer, syscall.SIGHUP); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("have the checkpointer read its configuration: %w", err)
	}
	return nil
}

// waitForNoStandby has no commit wait for standbys: the last line about a parameter counts.
func (s *Server) waitForNoStandby() error {
	const line = "synchronous_standby_names = ''\n"
	path := filepath.Join(s.Data(), "postgresql.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("have no commit wait: %w", err)
	}
	if bytes.HasSuffix(text, []byte("\n"+line)) {
		return nil
	}
	return WriteFile(path, append(text, line...), 0o600)
}

// waiting is the end of the title of a session that waits for standbys (SyncRepWaitForLSN in syncrep.c).
var waiting = regexp.MustCompile(` waiting for [0-9A-F]+/[0-9A-F]+$`)

func waitsForStandbys(title string) bool { return waiting.MatchString(title) }

// isCheckpointer says so of a title, "postgres: NAME: checkpointer". That of a session has more words.
func isCheckpointer(title string) bool {
	words := strings.Fields(title)
	return len(words) == 3 && words[0] == "postgres:" && words[2] == "checkpointer"
}

// isPending says that a process has still to take a signal. One that has gone has not.
func isPending(pid int, signal syscall.Signal) bool {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
	}
	return pendingSignals(string(text))&(1<<(uint(signal)-1)) != 0
}
