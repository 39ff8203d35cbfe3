package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// tooManyConnections is PostgreSQL's code for that.
	tooManyConnections = "53300"
	// mostSessions is more than any server here lets in.
	mostSessions = 2000
)

// useConnections opens sessions until the server lets in no more, and keeps them. The
// clients keep theirs; who comes anew is refused.
func useConnections(ctx context.Context, s *scene) error {
	var open []*pgx.Conn
	s.later("the connections are free", func(ctx context.Context) error {
		for _, c := range open {
			_ = c.Close(ctx) // the server may be gone
		}
		open = nil
		return nil
	})
	access := s.access()
	s.strike()
	for len(open) < mostSessions {
		c, err := access.Connect(ctx)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == tooManyConnections {
			s.note("%d sessions filled the server", len(open))
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d sessions: %w", len(open), err)
		}
		open = append(open, c)
	}
	return fmt.Errorf("%d sessions do not fill the server", len(open))
}

// greedy needs more memory than there is, at once: almost 1 GB, the most that a value has.
const greedy = `SELECT length(repeat('x', 1000000000))`

// headroom is what a container gets beyond what it has in use already.
const headroom = 64 << 20

// starve limits the memory of the primary's container to little more than it has, and
// has a backend ask for 1 GB: the kernel kills it. Before it does, all that run there may
// stand still, while it looks for memory to take back.
func starve(ctx context.Context, s *scene) error {
	group, err := s.primaryGroup("memory")
	if err != nil {
		return err
	}
	limit, used := "memory.max", "memory.current"
	if !group.unified {
		limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	now, err := group.number(used)
	if err != nil {
		return err
	}
	if err := s.limit(group, limit, now+headroom, "the memory of the container has no limit"); err != nil {
		return err
	}
	s.strike()
	once, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, err = s.user.Kubectl(once, "exec", s.primary.name, "--", "psql", "-U", "postgres", "-Xqc", greedy)
	if err == nil {
		return errors.New("the greedy backend got its memory")
	}
	s.note("the greedy backend: %s", oneLine(err.Error()))
	return nil
}

// oneLine is a text of several lines as one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// useProcesses lets the primary's container have no process or thread beyond those it
// has: no session can begin.
func useProcesses(_ context.Context, s *scene) error {
	group, err := s.primaryGroup("pids")
	if err != nil {
		return err
	}
	now, err := group.number("pids.current")
	if err != nil {
		return err
	}
	s.strike()
	return s.limit(group, "pids.max", now, "the container may have more processes")
}

// group is a cgroup: its directory, and whether it is of version 2.
type group struct {
	dir     string
	unified bool
}

// primaryGroup is the cgroup of the primary's container for a controller.
func (s *scene) primaryGroup(controller string) (group, error) {
	found, err := pick(s.primary.uid, "postmaster", process.postmaster)
	if err != nil {
		return group{}, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", found[0].pid))
	if err != nil {
		return group{}, fmt.Errorf("find the container's cgroup: %w", err)
	}
	g, there := groupOf(string(text), controller)
	if !there {
		return group{}, fmt.Errorf("the container has no cgroup for %s", controller)
	}
	return g, nil
}

// cgroupRoot is where the cgroups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// groupOf understands /proc/PID/cgroup: lines such as "4:memory:/pods/x" of version 1,
// and "0::/pods/x" of version 2, which has all controllers.
func groupOf(text, controller string) (group, bool) {
	var unified group
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			if c == controller {
				return group{dir: filepath.Join(cgroupRoot, controller, parts[2])}, true
			}
		}
		if parts[0] == "0" && parts[1] == "" {
			unified = group{dir: filepath.Join(cgroupRoot, parts[2]), unified: true}
		}
	}
	return unified, unified.unified
}

// number reads a number that the kernel keeps.
func (g group) number(file string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, fmt.Errorf("read the container's %s: %w", file, err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("understand the container's %s: %w", file, err)
	}
	return n, nil
}

// limit sets a limit of a cgroup until the fault is healed. A container that has ended
// has taken its own along.
func (s *scene) limit(g group, file string, most int64, healed string) error {
	path := filepath.Join(g.dir, file)
	before, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the container's limit: %w", err)
	}
	s.later(healed, func(context.Context) error {
		err := os.WriteFile(path, []byte(strings.TrimSpace(string(before))), 0o644)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err := os.WriteFile(path, []byte(strconv.FormatInt(most, 10)), 0o644); err != nil {
		return fmt.Errorf("set the container's limit: %w", err)
	}
	return nil
}
