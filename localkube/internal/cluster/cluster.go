// Package cluster starts, breaks, mends and removes the cluster. It is the
// order in which the other packages are called.
//
// There is no daemon. What runs is recorded by package proc, what was broken on
// purpose is recorded in a file (see fault.go), and all else is looked up on the
// machine. So every command works from whatever state it finds: `up` adds what
// is missing, `down` removes what is there.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/localkube/internal/cgroup"
	"toban.dev/localkube/internal/kube"
	"toban.dev/localkube/internal/machine"
	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/proc"
	"toban.dev/localkube/internal/render"
)

// Server is the URL of the API server.
var Server = fmt.Sprintf("https://%s:%d", plan.HostIP, plan.APIPort)

// Config is what was decided when the cluster was made. It is kept with it.
type Config struct {
	Nodes      int             `json:"nodes"`
	EtcdFsync  bool            `json:"etcdFsync"`
	Kubeconfig string          `json:"kubeconfig"` // where the user wanted it
	Programs   render.Programs `json:"programs"`
	Self       string          `json:"self"` // this program, which is the provisioner too
}

// A Cluster is the one on this machine. Whoever holds one may change it.
type Cluster struct {
	Config
	nodes []plan.Node
	tree  cgroup.Tree
	table proc.Table
	store pki.Store
	out   io.Writer
	lock  *os.File
}

// errNone is returned where a cluster is needed and there is none.
var errNone = errors.New("there is no cluster here: `localkube up` starts one")

// Open returns the cluster there is, to change it; until Close no other
// command can. It says so on out if it has to wait for one.
func Open(ctx context.Context, out io.Writer) (*Cluster, error) {
	c, err := acquire(ctx, out)
	if err != nil {
		return nil, err
	}
	config, err := readConfig()
	if err == nil {
		err = c.configure(config)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// acquire returns a cluster of which nothing is known but that nobody else
// changes it.
func acquire(ctx context.Context, out io.Writer) (*Cluster, error) {
	if err := machine.Check(); err != nil {
		return nil, err
	}
	tree, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, out)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		tree:  tree,
		table: proc.Table{Dir: plan.Records, Lock: lock},
		store: pki.Store{Dir: plan.PKI},
		out:   out,
		lock:  lock,
	}, nil
}

func (c *Cluster) configure(config Config) error {
	nodes, err := plan.Nodes(config.Nodes)
	c.Config, c.nodes = config, nodes
	return err
}

// Close lets other commands go on: the lock ends with its file.
func (c *Cluster) Close() { _ = c.lock.Close() }

// Nodes are the cluster's nodes.
func (c *Cluster) Nodes() []plan.Node { return c.nodes }

func (c *Cluster) client() (*kube.Client, error) { return kube.New(Server, c.store, "admin") }

func (c *Cluster) say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// takeLock waits for its turn. `down` removes the file, so one that is no
// longer there by then is not the one to hold.
func takeLock(ctx context.Context, out io.Writer) (*os.File, error) {
	for said := false; ; {
		file, err := os.OpenFile(plan.LockFile, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the cluster: %w", err)
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && sameFile(file, plan.LockFile) {
			return file, nil
		}
		_ = file.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the cluster: %w", err)
		}
		if err != nil && !said {
			said = true
			fmt.Fprintln(out, "waiting for another localkube command to end")
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait for another localkube command: %w", err)
		}
	}
}

func sameFile(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func readConfig() (Config, error) {
	var config Config
	err := readJSON(plan.ConfigFile, &config)
	if errors.Is(err, os.ErrNotExist) {
		return config, errNone
	}
	return config, err
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged (%w): run `localkube down`", path, err)
	}
	return nil
}

// writeJSON writes in one go, so that a reader never sees half of it.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, string(data)+"\n")
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
