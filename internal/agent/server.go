package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// running is a server that runs, as primary or standby. Commands start, turn and stop it; the tender (tend.go) sees to it
// meanwhile.
type running struct {
	*Agent
	// run is the command that started it.
	run     uint64
	process *postgres.Process
	// ending says that it is being ended here.
	ending atomic.Bool
	// control is the commands' own session: it is there when a vote must not wait.
	control *postgres.Session
	// end ends the tender and whoever else is tending, in the context life.
	end     context.CancelFunc
	life    context.Context //nolint:containedctx // it is the server's, not a caller's
	tending sync.WaitGroup
	// poke makes the tender look at once.
	poke chan struct{}
	// opened lets clients in: that of a leader that comes back waits for a majority's word.
	opened atomic.Bool
	// unruled says that commits may not wait though a rule is in the configuration: it has run without any, and only its
	// checkpointer knows whether it has read another since.
	unruled atomic.Bool

	// files guards the configuration files and what is in them.
	files    sync.Mutex
	settings postgres.Settings
	runs     good
	check    configCheck

	mutex    sync.Mutex
	upstream ha.Ballot // whom a standby follows, zero for nobody
	primary  bool      // it is configured as primary
	promoted bool      // it takes writes, by the agent's own doing
	least    map[string]int
	seen     seen
}

// seen is what the tender saw last.
type seen struct {
	streaming bool
	received  ha.LSN
	// end is the end of the WAL of a standby that follows nobody, once known.
	end   ha.LSN
	known bool
	// standbys are the voters that stream from a primary, written how far its WAL goes, oldest where its oldest WAL begins.
	standbys        []ha.Voter
	written, oldest ha.LSN
	// failure says why the server does not serve, empty while it does.
	failure string
	// unelected says that it takes writes, though it is run as a standby.
	unelected bool
}

// start starts the server in a role.
func (a *Agent) start(ctx context.Context, c machine.Command) error {
	a.require(c.Rule)
	primary := c.Kind == machine.StartPrimary
	if err := a.server.SetStandby(!primary); err != nil {
		return err
	}
	control, err := a.server.Control(ctx)
	if err != nil {
		return err
	}
	r := &running{Agent: a, run: c.ID, primary: primary, promoted: primary, upstream: c.Ballot, poke: make(chan struct{}, 1)}
	r.opened.Store(!c.Closed)
	if !primary {
		r.least = control.Least
	}
	r.life, r.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.startServer(ctx); err != nil {
		r.end()
		a.current.CompareAndSwap(r, nil)
		return err
	}
	if _, err := r.session(ctx); err != nil {
		a.Log.Info("no session yet", "error", err.Error())
	}
	return nil
}

// attend begins to look after the server, and notices when it ends by itself.
func (r *running) attend() {
	r.tending.Go(func() { r.tend(r.life) })
	go func() {
		<-r.process.Done()
		if !r.ending.Load() {
			r.report(func(s *protocol.Status) { s.Reason, s.Message = "ServerEnded", r.process.Err().Error() })
			r.post(machine.ServerEnded{Run: r.run, Why: r.process.Err().Error()})
		}
	}()
}

// letGo ends the tender and the session.
func (r *running) letGo() {
	r.end()
	r.tending.Wait()
	if r.control != nil {
		r.control.Close()
		r.control = nil
	}
}

func (r *running) ended() bool {
	select {
	case <-r.process.Done():
		return true
	default:
		return false
	}
}

// role is what the server is.
func (r *running) role() ha.Server {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.promoted {
		return ha.ServerPrimary
	}
	return ha.ServerStandby
}

// leading is the server while it is a primary, nil else.
func (a *Agent) leading() *running {
	if r := a.current.Load(); r != nil && r.role() == ha.ServerPrimary {
		return r
	}
	return nil
}

// following is whom a standby follows.
func (r *running) following() ha.Ballot {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.upstream
}

func (r *running) isPrimary() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.primary
}

// lowerBounds are those of a standby's parameters. See postgres.Control.
func (r *running) lowerBounds() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.least
}

func (r *running) setLeast(least map[string]int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.least = least
}

func (r *running) lastSeen() seen {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen
}

func (r *running) see(change func(*seen)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.seen)
}

// look makes the tender look at once.
func (r *running) look() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// turnTo makes a standby follow another leader, or nobody. It takes a reload.
func (r *running) turnTo(upstream ha.Ballot) error {
	r.mutex.Lock()
	r.upstream = upstream
	r.seen.known, r.seen.streaming = false, false
	r.mutex.Unlock()
	defer r.look()
	return r.rewrite()
}

// rewrite writes the configuration anew with the role, the upstream and the rule as
// they are now, and has the server read it.
func (r *running) rewrite() error {
	r.files.Lock()
	defer r.files.Unlock()
	settings, err := r.withRole(r.settings)
	if err != nil {
		return err
	}
	if err := r.server.Configure(settings); err != nil {
		return err
	}
	r.use(settings)
	return r.process.Reload()
}

// use notes the settings that the server runs with from now on. It is called with the files locked.
func (r *running) use(settings postgres.Settings) {
	r.settings = settings
	if settings.Synchronous == "" {
		r.unruled.Store(true)
	}
}

// withRole adds what follows from role, upstream and quorum to settings.
func (r *running) withRole(settings postgres.Settings) (postgres.Settings, error) {
	m, upstream, primary := r.memory.Get(), r.following(), r.isPrimary()
	settings.Synchronous = r.rule().String()
	if !primary {
		settings.Synchronous = ha.CommitRule(m.Record, m.Voter).String() // as if it were elected now
	}
	settings.Closed = r.currentConfig().Closed || !r.opened.Load()
	settings.Standby, settings.Upstream, settings.Least = !primary, nil, r.lowerBounds()
	if primary {
		return settings, nil // a promoted one keeps its lower bounds: to drop them takes a restart
	}
	if upstream.Leader == "" {
		return settings, nil
	}
	member, err := r.member(upstream.Leader)
	if err != nil {
		return settings, err
	}
	settings.Upstream = &postgres.Upstream{
		Host: member.Host, Address: r.peers.address(member), Port: naming.PortPostgreSQL,
		Name: string(m.Voter), Slot: naming.Slot(r.Name), Term: upstream.Term,
	}
	return settings, nil
}

// session is the commands' own.
func (r *running) session(ctx context.Context) (*postgres.Session, error) {
	if r.control != nil && !r.control.Broken() {
		return r.control, nil
	}
	session, err := r.server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r.control = session
	return session, nil
}

// checkpointDeadline bounds the checkpoint before a stop: the stop writes
// another one, which is then short.
const checkpointDeadline = 30 * time.Second

// readersDelay is how long readers at a standby may hold up an election.
const readersDelay = 100 * time.Millisecond

// awaitEnd waits until the end of the WAL of a standby that receives nothing is known.
func (r *running) awaitEnd(ctx context.Context) (ha.LSN, error) {
	session, err := r.session(ctx)
	if err != nil {
		return 0, err
	}
	for began := time.Now(); ; {
		text, known, err := session.EndOfWAL(ctx)
		if err != nil {
			return 0, err
		}
		if known {
			return r.endAsStandby(ctx, session, text)
		}
		if time.Since(began) > readersDelay {
			if _, err := session.EndReaders(ctx); err != nil {
				return 0, err
			}
		}
		if !sleep(ctx, 2*time.Millisecond) {
			return 0, fmt.Errorf("wait until all WAL is replayed: %w", ctx.Err())
		}
	}
}

// endAsStandby is the end of the WAL of a server that is a standby. One that was promoted without an election may have written more than that.
func (r *running) endAsStandby(ctx context.Context, session *postgres.Session, end string) (ha.LSN, error) {
	state, err := session.State(ctx)
	if err != nil {
		return 0, err
	}
	if !state.InRecovery && !r.isPrimary() {
		r.noteUnelected()
		return 0, errors.New("the server has been promoted without an election")
	}
	return ha.ParseLSN(end)
}

// promote makes the standby the primary of the term that it has won, and tells the new timeline with where it begins. Where
// that does not come to its end, it goes on in PostgreSQL by itself: the machine ends the server then.
func (a *Agent) promote(ctx context.Context, rule ha.Rule) (timeline uint32, begins ha.LSN, err error) {
	r := a.current.Load()
	if r == nil {
		return 0, 0, errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, promoteDeadline)
	defer cancel()
	session, err := r.session(ctx)
	if err != nil {
		return 0, 0, err
	}
	promote := r.promoteTo
	if rule.Count > 0 && r.unruled.Load() {
		promote = r.promoteShut
	}
	if err := promote(ctx, session, rule); err != nil {
		return 0, 0, err
	}
	if err := session.EnsureSlots(ctx, a.withArchive(a.slots())); err != nil {
		a.Log.Warn("the standbys' slots could not be made yet", "error", err.Error())
	}
	state, err := session.State(ctx)
	if err != nil {
		return 0, 0, err
	}
	begins, err = a.beginning(state.Timeline, a.memory.Get().Lineage)
	if err != nil {
		return 0, 0, err
	}
	a.report(func(s *protocol.Status) {
		s.Role, s.Ready, s.Reason, s.Message = protocol.RolePrimary, true, "Leader", "has just been elected"
	})
	r.look()
	r.tending.Go(func() { r.settle(r.life) })
	return state.Timeline, begins, nil
}

// promoteTo promotes the server. Its commits wait by a rule from the first on, if it has always run with one.
func (r *running) promoteTo(ctx context.Context, session *postgres.Session, rule ha.Rule) error {
	r.require(rule)
	if err := r.configurePrimary(); err != nil {
		return err
	}
	if err := session.Promote(ctx); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.promoted = true
	return nil
}

// promoteShut promotes a server that has run without a rule since it was started: while the record was one of durability
// async. It lets nobody in until its commits are seen to wait, and then they do so by the rule.
func (r *running) promoteShut(ctx context.Context, session *postgres.Session, rule ha.Rule) error {
	r.Log.Info("lets nobody in until commits are seen to wait", "rule", rule.String())
	if err := r.shut(ctx, session); err != nil {
		return err
	}
	if err := r.promoteTo(ctx, session, ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}); err != nil {
		return err
	}
	if err := r.server.AwaitEnforced(ctx); err != nil {
		return err
	}
	r.unruled.Store(false)
	r.require(rule)
	r.opened.Store(true)
	return r.rewrite()
}

// shut lets no client in any more, and ends those who are there.
func (r *running) shut(ctx context.Context, session *postgres.Session) error {
	before, err := session.LoadTime(ctx)
	if err != nil {
		return err
	}
	r.opened.Store(false)
	if err := r.rewrite(); err != nil {
		return err
	}
	if err := awaitReload(ctx, session, before); err != nil {
		return err
	}
	for {
		ended, err := session.EndClients(ctx)
		if err != nil || ended == 0 {
			return err
		}
		if !sleep(ctx, endInterval) {
			return fmt.Errorf("end the clients' sessions: %w", ctx.Err())
		}
	}
}

// settleDelay keeps the first checkpoint of a new primary out of the way of the
// standbys that come to it, which may share its disk.
const settleDelay = 2 * time.Second

// settle writes the first checkpoint of a new primary: the control file has
// the new timeline then, which is what a rewind of another instance goes by.
func (r *running) settle(ctx context.Context) {
	if !sleep(ctx, settleDelay) {
		return
	}
	session, err := r.server.Connect(ctx)
	if err == nil {
		defer session.Close()
		err = session.Checkpoint(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.Log.Info("no checkpoint after the promotion", "error", err.Error())
	}
}

// configurePrimary gives the server a primary's configuration before it is one:
// what it acknowledges from its first commit on must be on other disks too.
func (r *running) configurePrimary() error {
	r.mutex.Lock()
	r.primary, r.upstream = true, ha.Ballot{}
	r.mutex.Unlock()
	return r.rewrite()
}

// beginning is where the WAL of the last term of a lineage begins: where that of the term before was left. After a
// promotion that was cut short and made again, the timeline of the server begins later. The term before may have been cut
// short so, too, and has no timeline on record then: this one begins with the first that was made after its election.
func (a *Agent) beginning(timeline uint32, lineage []ha.Start) (ha.LSN, error) {
	text, err := a.server.Fork(timeline)
	if n := len(lineage); n > 1 {
		before, elected := lineage[n-2], lineage[n-1]
		if before.Timeline == 0 {
			text, err = a.server.ForkFrom(timeline, uint64(elected.LSN))
		} else {
			text, err = a.server.Branch(timeline, before.Timeline)
		}
	}
	if err != nil {
		return 0, err
	}
	return ha.ParseLSN(text)
}
