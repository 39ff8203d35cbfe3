package major

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"toban.dev/internal/postgres"
)

// stateShutDown is how pg_controldata words the state of a primary that was stopped in order.
const stateShutDown = "shut down"

// recover has the old server replay its WAL where it was not stopped in order. Data of a standby is marked as forked
// before: if it is given back, it has to follow the leader anew.
func (u *upgrade) recover(ctx context.Context) error {
	data := postgres.DataDirectory{Volume: u.Volume}
	if err := data.EndOrphans(ctx); err != nil {
		return err
	}
	control, err := u.old.control(ctx)
	if err != nil {
		return err
	}
	standby, err := u.old.isStandby()
	if err != nil {
		return err
	}
	state := control["Database cluster state"]
	if state == stateShutDown && !standby {
		return u.old.removePidFile()
	}
	u.Step("the old server replays its WAL: it was " + state)
	u.result.Recovered = true
	if err := u.noteState(""); err != nil {
		return err
	}
	if standby || strings.Contains(state, "recovery") && state != "in crash recovery" {
		if err := data.MarkForked(); err != nil {
			return err
		}
	}
	u.At("marked")
	if err := u.old.removeSignals(); err != nil {
		return err
	}
	if err := u.replay(ctx); err != nil {
		return err
	}
	if control, err = u.old.control(ctx); err != nil {
		return err
	}
	if state := control["Database cluster state"]; state != stateShutDown {
		return fmt.Errorf("the old server did not stop in order: it is %q", state)
	}
	return nil
}

// matches looks whether the data is of the former version, and the programs are of another one.
func (u *upgrade) matches() error {
	major, err := majorOf(u.old.data)
	if err != nil {
		return err
	}
	if major != u.Former.Major {
		return fmt.Errorf("%w: it is of version %d, and not of %d", ErrRefused, major, u.Former.Major)
	}
	if u.New.Major <= major {
		return fmt.Errorf("%w: from %d to %d is no way up", ErrRefused, major, u.New.Major)
	}
	return nil
}

// majorOf is the version that a data directory is of.
func majorOf(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("see of which version the data is: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("see of which version the data is: %w", err)
	}
	return major, nil
}

// signals are the files that make a server begin as a standby, or recover from an archive.
var signals = []string{"standby.signal", "recovery.signal"}

func (p places) isStandby() (bool, error) {
	for _, name := range signals {
		if _, err := os.Stat(filepath.Join(p.data, name)); err == nil {
			return true, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("see whether the old data is a standby's: %w", err)
		}
	}
	return false, nil
}

func (p places) removeSignals() error {
	for _, name := range signals {
		if err := os.Remove(filepath.Join(p.data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("have the old server begin as a primary: %w", err)
		}
	}
	return p.removePidFile()
}

// removePidFile removes that of a server that has ended: the volume is ours alone.
func (p places) removePidFile() error {
	if err := os.Remove(filepath.Join(p.data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what an ended server has left: %w", err)
	}
	return nil
}

// clearSockets removes the sockets of servers that have ended, with their locks, which may name other processes by now.
func (u *upgrade) clearSockets() error {
	found, err := filepath.Glob(filepath.Join(u.Run, ".s.PGSQL.*"))
	if err != nil {
		return fmt.Errorf("look for sockets: %w", err)
	}
	for _, path := range found {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what an ended server has left: %w", err)
		}
	}
	return nil
}

// replay starts the old server alone, which replays its WAL, and stops it in order.
func (u *upgrade) replay(ctx context.Context) error {
	options, err := u.configure(u.old, "-p 5432 -c listen_addresses= -c unix_socket_permissions=0700 "+
		"-c unix_socket_directories="+u.Run)
	if err != nil {
		return err
	}
	log := filepath.Join(u.Run, "former.log")
	start := u.command(ctx, u.old.programs, "pg_ctl", "-D", u.old.data, "-w", "-t", strconv.Itoa(patience), "-l", log,
		"-o", options, "start")
	if err := u.run(start); err != nil {
		return fmt.Errorf("the old server can't start: %w: %s", err, tailOf(log, 5))
	}
	u.At("replayed")
	stop := u.command(ctx, u.old.programs, "pg_ctl", "-D", u.old.data, "-w", "-t", strconv.Itoa(patience), "-m", "fast",
		"stop")
	if err := u.run(stop); err != nil {
		return fmt.Errorf("the old server does not stop: %w: %s", err, tailOf(log, 5))
	}
	return nil
}

// patience is how long a server may take to start or to stop, in seconds: it may have much to replay or to write.
const patience = 6 * 3600
