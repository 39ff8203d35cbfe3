package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/exporter"
	"toban.dev/internal/agent/fault"
	"toban.dev/internal/agent/poolers"
	"toban.dev/internal/ha"
	"toban.dev/internal/work/major"
)

// The files of an agent on its volume (internal/agent).
const (
	lineageFile = "toban_lineage.json"
	memoryFile  = "memory.json"
)

// instance is one with its volume, which outlive its agents. What is in it is guarded by the world's mutex.
type instance struct {
	w    *world
	name string
	// exists says that there is such an instance now: it has a volume, and mostly an agent.
	exists bool
	// host is where its agent runs, nil while none does. disk and files are what the volume has then.
	host  *host
	disk  *disk
	files map[string][]byte
	boots int
	// hardState is what its agent knows to be on the disk, remembered since when.
	hardState  ha.HardState
	remembered time.Time
	// stalled is until when the volume takes nothing, deaf until when the server takes no replication, and hanging
	// until when something takes, by its name. cramped says that the volume has no room for a copy beside the data.
	stalled, deaf time.Time
	hanging       map[string]time.Time
	// writes is how many files of the hard state are on their way to the disk.
	writes      int
	cramped     bool
	lastContact time.Time
}

// host is where an agent runs, with its server: a container, from its start to its end.
type host struct {
	*instance
	volume, run string
	disk        *disk
	agent       *agent.Agent
	server      *server
	conns       map[*conn]bool
	listeners   []*listener
	began       time.Time
	dead        chan struct{}
	over        chan struct{} // the agent has ended
	leave       context.CancelFunc
}

var errDead = errors.New("the container has ended")

func (h *host) isDead() bool {
	select {
	case <-h.dead:
		return true
	default:
		return false
	}
}

// until waits as long as something is due later than now.
func (h *host) until(ctx context.Context, due func() time.Time) error {
	for {
		h.w.mutex.Lock()
		wait, changed := time.Until(due()), h.w.changed
		h.w.mutex.Unlock()
		switch {
		case h.isDead():
			return errDead
		case ctx.Err() != nil:
			return ctx.Err()
		case wait <= 0:
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-h.dead:
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// takes is for how long something takes, by its name: a while, or as long as a fault has it hang.
func (h *host) takes(ctx context.Context, what string, low, high time.Duration) error {
	begun := time.Now()
	usual := h.w.between(what+h.name, low, high) + h.w.late(what+h.name)
	return h.until(ctx, func() time.Time {
		if hangs := h.hanging[what]; hangs.After(begun.Add(usual)) {
			return hangs
		}
		return begun.Add(usual)
	})
}

// awaitVolume waits until the volume takes something, for as long as that lasts: who waits for a
// disk can't be told to end.
func (h *host) awaitVolume() error { return h.awaitVolumeFor(context.Background()) }

func (h *host) awaitVolumeFor(ctx context.Context) error {
	return h.until(ctx, func() time.Time { return h.stalled })
}

// start runs an agent on an instance's volume.
func (i *instance) start() {
	w := i.w
	w.mutex.Lock()
	if i.host != nil || !i.exists {
		w.mutex.Unlock()
		return
	}
	i.boots++
	folder := filepath.Join(w.folder, i.name, "boot"+string(rune('a'+i.boots%26))+time.Now().Format("150405.000000"))
	h := &host{
		instance: i, volume: filepath.Join(folder, "volume"), run: filepath.Join(folder, "run"), disk: i.disk.copied(),
		began: time.Now(), conns: map[*conn]bool{}, dead: make(chan struct{}), over: make(chan struct{}),
	}
	h.server = &server{host: h}
	i.host, i.lastContact, i.remembered = h, time.Now(), time.Now()
	i.hardState = readHardState(i.files)
	w.mutex.Unlock()
	w.check.must(h.unpack())
	a, err := agent.New(context.Background(), h.options())
	w.check.must(err)
	ctx, leave := context.WithCancel(context.Background())
	w.mutex.Lock()
	h.agent, h.leave = a, leave
	w.log(i.name, "starts")
	w.mutex.Unlock()
	go func() {
		err := a.Run(ctx)
		leave()
		close(h.over)
		w.mutex.Lock()
		w.log(i.name, "ends: %v", err)
		w.mutex.Unlock()
		h.kill() // in order: then nothing runs here any more
	}()
}

// unpack puts the volume's files into a folder of this host alone: what an earlier agent still does, it does elsewhere.
func (h *host) unpack() error {
	for _, folder := range []string{h.volume, h.run} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	if h.disk.data {
		if err := os.MkdirAll(h.server.Path(), 0o700); err != nil {
			return err
		}
	}
	for name, content := range h.files {
		path := filepath.Join(h.volume, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) options() agent.Options {
	var cluster agent.Cluster
	if h.w.api != nil {
		cluster = h.w.api.cluster(h.name)
	}
	return agent.Options{
		Name: h.name, ConfigFile: h.w.configFile(h.name), Authority: h.w.authority, Volume: h.volume, Run: h.run,
		Cluster: cluster, Log: slog.New(&logHandler{w: h.w, who: h.name}), ServerLog: io.Discard,
		GiveUp: major.GiveUp, GiveUpOthers: major.GiveUpOthers,
		Annexes: agent.Annexes{Metrics: exporter.New, Breaker: fault.New, Poolers: poolers.New},
		Surroundings: agent.Surroundings{
			Server: h.server, ListenAt: h.listen, Dial: h.dial, WriteFile: h.writeFile,
			Allocate: func(string, int64) error { return nil }, // a thousand volumes are on this machine's disk
			Stalled:  func() time.Duration { return h.w.stallsOf(h.name) },
		},
	}
}

func (h *host) listen(_ context.Context, address string) (net.Listener, error) {
	if h.isDead() {
		return nil, errDead
	}
	l, err := h.w.net.listen(h.name + address)
	if err != nil {
		return nil, err
	}
	h.w.mutex.Lock()
	defer h.w.mutex.Unlock()
	h.listeners = append(h.listeners, l)
	return &hostListener{l, h}, nil
}

// hostListener notes what connections a host has, which end with it.
type hostListener struct {
	*listener
	h *host
}

// Accept is net.Listener's.
func (l *hostListener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	return c, l.h.note(c)
}

func (h *host) note(c *conn) error {
	h.w.mutex.Lock()
	defer h.w.mutex.Unlock()
	if h.isDead() {
		_ = c.Close()
		return errDead
	}
	h.conns[c] = true
	return nil
}

func (h *host) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if h.isDead() {
		return nil, errDead
	}
	c, err := h.w.net.dial(ctx, h.name, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "virtual", Err: err}
	}
	return c, h.note(c)
}

func (h *host) count(writes int) {
	h.w.mutex.Lock()
	defer h.w.mutex.Unlock()
	h.writes += writes
}

// writeFile replaces a file on the volume, when that takes it.
func (h *host) writeFile(path string, content []byte, mode os.FileMode) error {
	h.count(1)
	defer h.count(-1)
	if err := h.takes(context.Background(), "fsync", 200*time.Microsecond, 20*time.Millisecond); err != nil {
		return err
	}
	if err := h.awaitVolume(); err != nil {
		return err
	}
	h.w.mutex.Lock()
	defer h.w.mutex.Unlock()
	if h.isDead() {
		return errDead
	}
	fails := h.w.failsToStore(h.name)
	if errors.Is(fails, syscall.ENOSPC) {
		return fails
	}
	if filepath.Base(path) == memoryFile && fails == nil {
		h.w.check.remembers(h, content)
	}
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".new", path), fails)
}

// failsToStore says why a disk does not take a file of the hard state: it has no room, or fails when the file is in its
// place already. In most schedules all do. It is called with the world's mutex.
func (w *world) failsToStore(name string) error {
	if !w.scarce || !w.chance("store"+name, 0.05) {
		return nil
	}
	err := syscall.ENOSPC
	if w.chance("in place"+name, 0.5) {
		err = syscall.EIO
	}
	w.log(name, "can't store a file of the hard state: %v", err)
	return err
}

// kill ends all that runs here at once, and keeps what is on the volume in this moment.
func (h *host) kill() {
	h.w.mutex.Lock()
	if h.isDead() {
		h.w.mutex.Unlock()
		return
	}
	close(h.dead)
	h.instance.disk, h.files, h.host = h.disk.copied(), h.pack(), nil
	p, conns, listeners := h.server.process, h.conns, h.listeners
	h.w.log(h.name, "has ended")
	h.w.mutex.Unlock()
	if p != nil {
		p.finish(errDead)
	}
	for _, l := range listeners {
		_ = l.Close()
	}
	for c := range conns {
		_ = c.Close()
	}
}

// pack is what an agent has written on its volume.
func (h *host) pack() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"toban/" + memoryFile, "toban/good.json", "toban/slack", "data/" + lineageFile} {
		if content, err := os.ReadFile(filepath.Join(h.volume, name)); err == nil {
			files[name] = content
		}
	}
	return files
}

// stop tells the agent to stop, as when its Pod is deleted, and ends it when it has not after a while.
func (h *host) stop(patience time.Duration) {
	h.leave()
	select {
	case <-h.over:
	case <-time.After(patience):
		h.kill()
	}
}

func readHardState(files map[string][]byte) (m ha.HardState) {
	_ = json.Unmarshal(files["toban/"+memoryFile], &m) // it has none yet
	return m
}

func readHistory(data string) []ha.TermStart {
	var history []ha.TermStart
	text, err := os.ReadFile(filepath.Join(data, lineageFile))
	if err != nil || json.Unmarshal(text, &history) != nil {
		return nil
	}
	return history
}
