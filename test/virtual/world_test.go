// Package virtual runs whole clusters of the real agent (internal/agent) in virtual time, under faults, and checks
// what must never happen. Around the agents all is modelled: PostgreSQL, the network, the disk and the Kubernetes API
// can be slow, hang, half-fail, and go on with what was given up. internal/ha/simulation does the same with the
// machine alone, many times faster.
package virtual

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// world is one cluster with everything around it.
type world struct {
	starvation starvation
	*testing.T
	seed      uint64
	folder    string
	authority string
	net       *network
	api       *api
	check     *checker
	operator  *protocol.Client
	instances []*instance
	began     time.Time
	ctx       context.Context
	end       context.CancelFunc
	clients   sync.WaitGroup

	mutex   sync.Mutex
	changed chan struct{} // closed when a fault begins or ends
	config  protocol.Config
	ids     uint64
	systems int
	// scarce says that disks do not take a hard state now and then.
	scarce  bool
	trace   []string
	failure string
}

// keys are made once: they are all the same.
var keys = sync.OnceValues(func() (authority, operators *pki.Authority) {
	from := time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC) // a bubble begins with the year 2000
	authority, err := pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "test", from)
	if err != nil {
		panic(err)
	}
	operators, err = pki.NewAuthority(bytes.Repeat([]byte{9}, 32), "operator", from)
	if err != nil {
		panic(err)
	}
	return authority, operators
})

// run runs a cluster of some instances in a bubble of its own, and fails the test when an invariant did not hold.
func run(t *testing.T, seed uint64, instances int, scenario func(w *world)) {
	t.Helper()
	runWith(t, seed, instances, protocol.DurabilityQuorum, scenario)
}

// runWith is run with a durability from the beginning.
func runWith(t *testing.T, seed uint64, instances int, durability string, scenario func(w *world)) {
	t.Helper()
	folder := scratch(t)
	keys()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, folder, instances, durability)
		defer w.close()
		for _, i := range w.instances {
			i.start()
		}
		scenario(w)
	})
}

// scratch is a folder for what agents write: in memory where there is one, because they wait for their disk each time.
func scratch(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return t.TempDir()
	}
	folder, err := os.MkdirTemp("/dev/shm", "toban-virtual-") //nolint:usetesting // that is on a disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func newWorld(t *testing.T, seed uint64, folder string, instances int, durability string) *world {
	t.Helper()
	w := &world{
		T: t, seed: seed, folder: folder, authority: filepath.Join(folder, "ca"),
		began: time.Now(), changed: make(chan struct{}),
	}
	w.net, w.api, w.check = newNetwork(w), newAPI(w), &checker{w: w, winners: map[uint64]*win{}}
	w.ctx, w.end = context.WithCancel(t.Context())
	authority, operators := keys()
	w.config = protocol.Config{Cluster: "db", Namespace: "test", Major: 17, Durability: durability, Witness: leaseUID,
		Authority: string(authority.CertPEM()), Operator: string(operators.CertPEM())}
	w.config.Members = members(instances)
	for i := range maxInstances {
		name := naming.Instance("db", i)
		w.instances = append(w.instances,
			&instance{w: w, name: name, exists: i < instances, disk: &disk{}, hanging: map[string]time.Time{}})
	}
	w.writeAuthority(authority)
	w.operate(authority, operators)
	w.clients.Go(w.work)
	w.clients.Go(w.watch)
	w.clients.Go(w.reconcile)
	return w
}

func (w *world) writeAuthority(authority *pki.Authority) {
	key, err := authority.KeyPEM()
	w.check.must(err)
	w.check.must(os.MkdirAll(w.authority, 0o700))
	w.check.must(os.WriteFile(filepath.Join(w.authority, naming.KeyCA), authority.CertPEM(), 0o600))
	w.check.must(os.WriteFile(filepath.Join(w.authority, naming.KeyCAKey), key, 0o600))
}

// configFile is the config as the operator's ConfigMap has it now, for one instance.
func (w *world) configFile(name string) string {
	w.mutex.Lock()
	w.config = w.config.Revise()
	text, err := json.Marshal(w.config)
	w.mutex.Unlock()
	w.check.must(err)
	path := filepath.Join(w.folder, name+".json")
	w.check.must(os.WriteFile(path, text, 0o600))
	return path
}

// nextID is another one each time. It is called with the world's mutex.
func (w *world) nextID() uint64 {
	w.ids++
	return w.ids
}

// draw is a number that follows from the seed, from what it is for, and from the time.
func (w *world) draw(what string) uint64 {
	h := fnv.New64a()
	var at [16]byte
	binary.LittleEndian.PutUint64(at[:], w.seed)
	binary.LittleEndian.PutUint64(at[8:], uint64(time.Since(w.began)))
	_, _ = h.Write(at[:])
	_, _ = h.Write([]byte(what))
	n := h.Sum64()
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	return n ^ n>>33
}

// between is a random duration, chance true with a probability.
func (w *world) between(what string, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(w.draw(what)%uint64(high-low))
}

func (w *world) chance(what string, p float64) bool { return float64(w.draw(what)%1e6)/1e6 < p }

// log notes an event. It is called with the world's mutex.
func (w *world) log(who, format string, args ...any) {
	w.trace = append(w.trace,
		fmt.Sprintf("%9.3f %-8s %s", time.Since(w.began).Seconds(), who, fmt.Sprintf(format, args...)))
}

// fail notes the first invariant that does not hold. It is called with the world's mutex.
func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == "" {
		w.failure = invariant + ": " + fmt.Sprintf(format, args...)
		w.log("CHECK", "%s", w.failure)
	}
}

func (w *world) failed() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.failure != ""
}

// change begins or ends a fault.
func (w *world) change(do func()) {
	w.mutex.Lock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
	hosts := w.hosts()
	w.mutex.Unlock()
	for _, h := range hosts {
		w.mutex.Lock()
		if p := h.server.process; p != nil {
			p.bump()
		}
		w.mutex.Unlock()
	}
}

// hosts are those that run. It is called with the world's mutex.
func (w *world) hosts() []*host {
	var all []*host
	for _, i := range w.instances {
		if i.host != nil && i.host.agent != nil {
			all = append(all, i.host)
		}
	}
	return all
}

// close ends everything, and says how it was.
func (w *world) close() {
	w.end()
	w.clients.Wait() // nobody starts an agent any more
	w.mutex.Lock()
	hosts := w.hosts()
	w.mutex.Unlock()
	for _, h := range hosts {
		h.kill()
		<-h.over
	}
	w.operator.Close()
	time.Sleep(time.Minute) // what was given up ends by its own deadlines
	if w.failure != "" {
		w.Errorf("seed %d: %s\n%s", w.seed, w.failure, strings.Join(w.trace[max(0, len(w.trace)-*traceLines):], "\n"))
	} else if *tracing {
		w.Log("\n" + strings.Join(w.trace, "\n"))
	}
}

// logHandler takes an agent's log into the trace.
type logHandler struct {
	w     *world
	who   string
	attrs []slog.Attr
}

// Enabled, Handle, WithAttrs and WithGroup are slog.Handler's.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	values := []string{r.Message}
	r.Attrs(func(a slog.Attr) bool { values = append(values, a.String()); return true })
	h.w.mutex.Lock()
	defer h.w.mutex.Unlock()
	h.w.log(h.who, "%s", strings.Join(values, " "))
	return nil
}
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.w, h.who, append(slices.Clone(h.attrs), attrs...)}
}
func (h *logHandler) WithGroup(string) slog.Handler { return h }
