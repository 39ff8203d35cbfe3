package virtual

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
)

// process is a server that runs. What is in it is guarded by the world's mutex.
type process struct {
	s *server
	w *world
	// conf is what it has read, loaded when, waits whether its commits wait for standbys: the
	// checkpointer has seen the rule.
	conf   postgres.Settings
	loaded time.Time
	waits  bool
	// ready says that it takes sessions, recovery that it is a standby, stopping that it takes nothing any more.
	ready, recovery, promoting, stopping bool
	// hangs is until when it answers nothing.
	hangs time.Time
	// receives says that there is a receiver of WAL, streams that it streams; replayed is how far
	// the WAL has been replayed.
	receives, streams bool
	replayed          int
	// held says that replay does not go on.
	held      bool
	endStream context.CancelFunc
	// Of a primary: the standbys, its term, how far the WAL went when it began, and how far it has been acknowledged.
	downstream   map[*downstream]bool
	term         uint64
	began, acked int
	firstAck     time.Time
	cameBack     bool

	changed  chan struct{}
	gone     chan struct{}
	life     context.Context
	end      context.CancelFunc
	listener *listener
	why      error
}

var _ running.Process = (*process)(nil)

func newProcess(s *server) *process {
	p := &process{s: s, w: s.w, conf: s.disk.settings, recovery: s.disk.standby, downstream: map[*downstream]bool{},
		changed: make(chan struct{}), gone: make(chan struct{})}
	p.waits = p.conf.Synchronous != ""
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// is looks at something.
func (p *process) is(look func() bool) bool {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	return look()
}

func (p *process) isEnded() bool { return p.life.Err() != nil }
func (p *process) ended() bool   { return p.isEnded() }

// bump has everybody look again who waits for something of the server. It is called with the world's mutex.
func (p *process) bump() {
	close(p.changed)
	p.changed = make(chan struct{})
}

var errGone = errors.New("the server has ended")

// await waits until something is so.
func (p *process) await(ctx context.Context, is func() bool) error {
	for {
		p.w.mutex.Lock()
		so, changed := is(), p.changed
		p.w.mutex.Unlock()
		if p.isEnded() {
			return errGone
		}
		if so {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.life.Done():
			return errGone
		case <-changed:
		}
	}
}

// run lets the server start, and recover what it has to.
func (p *process) run() {
	if p.s.takes(p.life, "recovery", 10*time.Millisecond, 150*time.Millisecond) != nil {
		return
	}
	listener, err := p.w.net.listen(net.JoinHostPort(p.s.name, strconv.Itoa(naming.PortPostgreSQL)))
	if err != nil {
		p.finish(err)
		return
	}
	p.w.mutex.Lock()
	p.listener = listener
	if p.isEnded() {
		_ = listener.Close()
	}
	p.ready, p.loaded, p.replayed = true, time.Now(), len(p.s.disk.wal)
	p.s.disk.state = "in archive recovery"
	if !p.recovery {
		p.cameBack = true
		p.lead()
	}
	p.bump()
	p.w.mutex.Unlock()
	go p.serve(listener)
	p.receiveAlways()
}

// lead begins to take writes. It is called with the world's mutex.
func (p *process) lead() {
	if p.isEnded() {
		return
	}
	d := p.s.disk
	d.state = "in production"
	// Who alone has a vote takes later terms without another timeline.
	p.term = max(p.s.term(), p.s.hardState.Won)
	p.began, p.acked, p.firstAck = len(d.wal), 0, time.Time{}
	p.append("begin")
	p.w.check.leads(p)
}

// append writes a record. It is called with the world's mutex.
func (p *process) append(kind string) int {
	end := p.s.disk.write(p.w.nextID(), kind)
	p.replayed = end
	p.bump()
	return end
}

// finish ends the process, for a reason if it was not told to.
func (p *process) finish(why error) {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	if p.isEnded() {
		return
	}
	p.why, p.stopping, p.streams = why, true, false
	p.end()
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for c := range p.downstream {
		_ = c.conn.Close()
	}
	p.bump()
	close(p.gone)
}

// open says that clients are let in to write. It is called with the world's mutex.
func (p *process) open() bool {
	return p.ready && !p.recovery && !p.stopping && !p.conf.Closed && !p.isEnded()
}

// Done and Err are postgres.Process's.
func (p *process) Done() <-chan struct{} { return p.gone }
func (p *process) Err() error {
	if p.why == nil {
		return errors.New("the server has stopped")
	}
	return p.why
}

// MissingTablespace is postgres.Process's. Nobody makes tablespaces here.
func (p *process) MissingTablespace() string { return "" }

// Ready is postgres.Process's.
func (p *process) Ready(ctx context.Context) error {
	return p.await(ctx, func() bool { return p.ready })
}

// EndLogins is postgres.Process's. In the model nobody takes time to log in.
func (p *process) EndLogins(time.Duration, func([]int) ([]int, error)) (int, error) { return 0, nil }

// Reload is postgres.Process's. Sessions read the configuration soon, and the checkpointer when it comes to that.
func (p *process) Reload() error {
	if p.isEnded() {
		return errGone
	}
	read := p.w.between("reload"+p.s.name, 200*time.Microsecond, 15*time.Millisecond)
	seen := p.w.between("rule"+p.s.name, 0, 40*time.Millisecond)
	if p.w.chance("checkpointer"+p.s.name, 0.1) {
		seen += p.w.between("rule later"+p.s.name, 0, 500*time.Millisecond)
	}
	time.AfterFunc(read, func() { p.readConfiguration() })
	time.AfterFunc(read+seen, func() {
		p.w.mutex.Lock()
		defer p.w.mutex.Unlock()
		p.waits = p.conf.Synchronous != ""
		p.bump()
	})
	return nil
}

func (p *process) readConfiguration() {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	if p.isEnded() {
		return
	}
	before := p.conf.Upstream
	p.conf, p.loaded = p.s.disk.settings, time.Now()
	if now := p.conf.Upstream; p.endStream != nil && (now == nil || before == nil || *now != *before) {
		p.endStream()
	}
	p.bump()
}

// startPromotion has a standby become a primary, which it does in its own time.
func (p *process) startPromotion() {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	if p.promoting || !p.recovery {
		return
	}
	p.promoting = true
	if p.endStream != nil {
		p.endStream()
	}
	p.bump()
	go p.promote()
}

func (p *process) promote() {
	if p.s.takes(p.life, "promote", 10*time.Millisecond, 150*time.Millisecond) != nil {
		return
	}
	if p.await(p.life, func() bool { return !p.receives && p.replayed == len(p.s.disk.wal) }) != nil ||
		p.s.awaitVolumeFor(p.life) != nil {
		return
	}
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	if p.isEnded() || p.stopping {
		return
	}
	d := p.s.disk
	d.branch()
	d.standby, p.recovery = false, false
	for c := range p.downstream {
		_ = c.conn.Close()
	}
	p.lead()
	time.AfterFunc(p.w.between("settle"+p.s.name, 50*time.Millisecond, 3*time.Second), func() {
		p.w.mutex.Lock()
		defer p.w.mutex.Unlock()
		if !p.isEnded() {
			d.settled, d.checkpoint = d.timeline(), len(d.wal)-1
		}
	})
}

// Stop is postgres.Process's: in order, or at once when ctx ends before.
func (p *process) Stop(ctx context.Context, mode postgres.StopMode) {
	p.w.mutex.Lock()
	p.stopping = true
	p.bump()
	p.w.mutex.Unlock()
	if mode == postgres.StopFast && p.stopInOrder(ctx) == nil {
		p.finish(nil)
		return
	}
	_ = p.s.awaitVolume() // what waits for a disk can't be killed
	p.finish(nil)
}

// stopInOrder writes the shutdown's record, and waits until the standbys have it.
func (p *process) stopInOrder(ctx context.Context) error {
	if err := p.await(ctx, func() bool { return p.ready && time.Now().After(p.hangs) }); err != nil {
		return err
	}
	p.w.mutex.Lock()
	if p.endStream != nil {
		p.endStream()
	}
	p.w.mutex.Unlock()
	if err := p.s.takes(ctx, "checkpoint", 5*time.Millisecond, 100*time.Millisecond); err != nil {
		return err
	}
	if err := p.s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	p.w.mutex.Lock()
	d, primary := p.s.disk, !p.recovery && p.ready
	if p.isEnded() {
		p.w.mutex.Unlock()
		return nil
	}
	d.state = "shut down in recovery"
	if primary {
		p.append("shutdown")
		d.state, d.checkpoint, d.settled = "shut down", len(d.wal)-1, d.timeline()
	}
	p.w.mutex.Unlock()
	return p.await(ctx, func() bool {
		for c := range p.downstream {
			if primary && c.flushed < len(d.wal) {
				return false
			}
		}
		return !p.receives
	})
}

// Kill is postgres.Process's: sessions end at once.
func (p *process) Kill(ctx context.Context, _ bool) error {
	p.w.mutex.Lock()
	p.stopping = true
	p.bump()
	p.w.mutex.Unlock()
	return pause(ctx, p.w.between("fence"+p.s.name, time.Millisecond, 30*time.Millisecond))
}

// Gone is postgres.Process's: what waits for a disk ends when that answers.
func (p *process) Gone(ctx context.Context) error {
	err := p.s.awaitVolumeFor(ctx)
	if err != nil && !p.s.isDead() {
		return fmt.Errorf("fence the server: it does not end: %w", err)
	}
	p.finish(errors.New("it was told to stop at once"))
	return nil
}

var ruleForm = regexp.MustCompile(`^ANY (\d+) \((.*)\)$`)

// satisfied says whether as many standbys as the rule asks for have WAL on disk up to somewhere. It is called with the
// world's mutex.
func (p *process) satisfied(end int) bool {
	match := ruleForm.FindStringSubmatch(p.conf.Synchronous)
	if match == nil {
		return p.conf.Synchronous == ""
	}
	need, _ := strconv.Atoi(match[1])
	for c := range p.downstream {
		if c.flushed >= end && strings.Contains(match[2], `"`+c.name+`"`) {
			need--
		}
	}
	return need <= 0
}

// commit writes something as a client does, and returns when that is acknowledged.
func (p *process) commit(ctx context.Context) error {
	if err := p.s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	p.w.mutex.Lock()
	if !p.open() || time.Now().Before(p.hangs) {
		p.w.mutex.Unlock()
		return errGone
	}
	end := p.append("write")
	id := p.s.disk.wal[end-1].id
	p.w.mutex.Unlock()
	return p.await(ctx, func() bool {
		if p.stopping || p.waits && !p.satisfied(end) || time.Now().Before(p.hangs) {
			return false
		}
		p.acked = max(p.acked, end)
		p.w.check.acknowledged(p, end-1, id)
		return true
	})
}

// AwaitEnforced is postgres.Server's.
func (s *server) AwaitEnforced(ctx context.Context) error {
	watcher, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for {
		waits, err := ask(ctx, watcher,
			func(*disk) bool { return watcher.waits && !watcher.satisfied(watcher.append("try")) })
		if err != nil || waits {
			return err
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// Barrier is postgres.Server's.
func (s *server) Barrier(ctx context.Context, rule string) error {
	watcher, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err := s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	inForce := false
	end, err := ask(ctx, watcher, func(*disk) int {
		inForce = watcher.conf.Synchronous == rule
		return watcher.append("barrier")
	})
	if err != nil {
		return err
	}
	if !inForce {
		return fmt.Errorf("synchronous_standby_names is not %q", rule)
	}
	if err := watcher.await(ctx, func() bool { return !watcher.waits || watcher.satisfied(end) }); err != nil {
		return err
	}
	have, err := ask(ctx, watcher,
		func(*disk) bool { return watcher.conf.Synchronous == rule && watcher.satisfied(end) })
	if err == nil && !have {
		err = fmt.Errorf("the standbys of %q do not have it on disk", rule)
	}
	return err
}
