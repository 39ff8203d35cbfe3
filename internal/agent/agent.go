// Package agent is the process with id 1 in an instance's Pod. It owns the
// postmaster: it makes the data, configures, starts, follows and stops it, and
// says how it is. It observes, lets package ha decide, and acts. It must not
// import the operator's packages; what it knows of Kubernetes, the labels of the
// SampleDB's own Pods and its Lease, is in package kube below. Where what is done is
// in docs/architecture.md, "Inside of an agent".
package agent

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/agent/archive"
	"toban.dev/internal/agent/identity"
	"toban.dev/internal/agent/peers"
	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/agent/publish"
	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/serve"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/agent/witness"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/httppath"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// Cluster is what an agent asks of the Kubernetes cluster around it. It may be
// away at any time: only the witness of two instances is ever waited for.
type Cluster interface {
	publish.Cluster
	witness.Object
}

// Options say where an agent finds its things.
type Options struct {
	// Name is the instance's.
	Name string
	// ConfigFile is the protocol.Config to start from, Authority the folder with
	// the SampleDB's authority (ca.crt, ca.key).
	ConfigFile, Authority string
	// Certificate is the folder with the user's certificate for clients, in one of its Secret's name.
	Certificate string
	// Volume is the persistent volume, Run a folder in memory.
	Volume, Run string
	// WALVolume is the persistent volume that pg_wal is on, "" where that is Volume.
	WALVolume string
	// Programs is a folder for programs that the agent is given to go on as. It is neither on the volume nor in memory.
	Programs string
	// Listen is the address to listen on, "" for all. Address is what the others
	// reach this instance by, if that is known.
	Listen, Address string
	// Restored is the id of the restore in place whose data the instance must have, "" for none.
	Restored string
	// Survivor is the instance that goes on with its own data as that of Restored, "" where a restore has made it.
	Survivor string
	// Upgraded is the id of the upgrade to another major version whose data the instance must have, "" for none.
	Upgraded string
	// GiveUp and GiveUpOthers give the old data back where an upgrade to another major version was given up
	// (internal/work/major); nil where no such upgrade can have been.
	GiveUp       func(ctx context.Context, volume string, waits func(whom string)) error
	GiveUpOthers func(ctx context.Context, volume, id, system string, waits func(whom string)) error
	// Cluster is the Kubernetes around this instance; nil where there is none.
	Cluster Cluster
	Log     *slog.Logger
	// ServerLog takes PostgreSQL's own log.
	ServerLog io.Writer
	Surroundings
	Annexes

	// found are PostgreSQL's programs, once they have been looked for.
	found postgres.Programs
}

// reasonStarting and messageStarting are those of an agent that has decided nothing yet.
const reasonStarting, messageStarting = "Starting", "the agent is starting"

// Agent runs one instance: it connects the components that do the work, and carries
// out what the machine wants.
type Agent struct {
	options Options
	// taking is what the program before has handed over, nil for nothing; exchange hands over to the next.
	taking   *taking
	exchange *exchange
	// lock is the right to work on the volume; the hard state is read when it is there, and elections begin.
	lock   *volume.Lock
	states *volume.StateStore

	configs   configs
	status    *status.Board
	server    running.PostgreSQL
	identity  *identity.Identity
	peers     *peers.Peers
	members   *members
	leader    *leader
	publisher *publish.Publisher
	flags     running.Flags
	idle      running.Idle
	pressure  *pressure.Gauge
	promises  *promises
	breaker   Breaker
	// toStore is the way to the store of the archive.
	toStore *httppath.Path
	// authorities are those of the certificates for clients.
	authorities atomic.Pointer[string]
	describer   *describer
	servers
	// serverLog takes the log of each server that runs.
	serverLog *postgres.CommitLog
	// current is the server that runs, nil while none does.
	current atomic.Pointer[running.Server]

	electing
}

// servers are those that answer others: peers, operator and poolers; the kubelet; Prometheus.
type servers struct {
	api     *serve.API
	probes  *serve.Probes
	metrics *serve.Metrics
}

// electing is what is there when elections begin. begun says that they have: before that, nobody is heard.
type electing struct {
	begun     atomic.Bool
	elections *elections
	queue     *queue
	commands  *commands
	demands   *demands
	data      *dataWatch
	ballots   *ballots
	archiver  *archive.Loop
	// life lasts as long as the actors do.
	life context.Context //nolint:containedctx // for what they start and do not wait for
}

// New reads the config and looks for PostgreSQL's programs. The volume is not touched before Run.
func New(ctx context.Context, options Options) (*Agent, error) {
	taking, err := takeProcess()
	if err != nil {
		return nil, err
	}
	config, err := readConfig(options.ConfigFile)
	if err != nil {
		return nil, err
	}
	if taking != nil {
		taking.giveBackLater()
		config, options.found = taking.Config, taking.Programs // the file may be an earlier one
	} else {
		forgetExchange(options.Run)
	}
	server, version, err := options.postgreSQL(ctx, config.Major)
	if err != nil {
		return nil, err
	}
	return newAgent(options, config, server, version, taking)
}

// newAgent puts together what there is before elections begin.
func newAgent(
	options Options, config protocol.Config, server running.PostgreSQL, version string, taking *taking,
) (*Agent, error) {
	a := &Agent{options: options, server: server, taking: taking, configs: configs{self: options.Name}}
	var cancelled int64
	if taking != nil {
		cancelled = taking.Status.Election.CancelledCommits
	}
	a.serverLog = postgres.NewCommitLog(options.ServerLog, cancelled)
	a.exchange = newExchange(a)
	a.configs.set(config)
	a.status = status.New(protocol.Status{
		Name: options.Name, Protocol: protocol.Version, Boot: rand.Text(), Reason: reasonStarting,
		Message: messageStarting, ServerVersion: version, Election: protocol.Election{Limits: ha.OwnLimits()},
	})
	a.pressure = &pressure.Gauge{Stalled: options.Stalled}
	a.describer = &describer{
		status: a.status, flags: &a.flags, slack: a.pressure.Slack, cancelled: a.serverLog.Cancelled,
	}
	a.toStore = bucket.NewWay()
	a.breaker = options.breaker(a)
	var err error
	a.identity, err = identity.New(identity.Options{
		Name: options.Name, Address: options.Address, Authority: options.Authority, Given: options.Certificate,
		Run: options.Run, Report: a.reportCertificate, Log: options.Log,
	}, config)
	if err != nil {
		return nil, err
	}
	client := protocol.NewClient(
		pki.ClientTLSBy(a.identity.Certificate, a.identity.Roots, naming.IdentityInstance), naming.PortAgent)
	a.identity.Renewed = func() {
		a.flags.Renewed.Store(true)
		client.Close() // what is opened from now on shows the new certificate
		a.observeServer()
	}
	if options.Dial != nil {
		client.DialBy(options.Dial)
	}
	a.meetOthers(client)
	a.answerOthers()
	return a, nil
}

// meetOthers puts together what knows of the other instances.
func (a *Agent) meetOthers(client peers.Client) {
	remembered := func() ha.HardState { return a.states.Get() }
	a.members = &members{self: a.options.Name, config: a.configs.get, hardState: remembered}
	a.peers = peers.New(a.options.Name, client, a.members.all, a.post)
	a.peers.Rests, a.peers.Slack = a.needsNoNewsOf, a.pressure.Slack
	a.members.routes = a.peers
	a.leader = &leader{
		self: a.options.Name, hardState: remembered, own: a.status.Get, last: a.peers.Last, members: a.members.all,
	}
	a.publisher = publish.New(publish.Options{
		Name: a.options.Name, Cluster: a.options.Cluster, HardState: remembered, Others: a.peers.Names,
		Role: func() protocol.Role { return a.status.Get().Role }, Log: a.options.Log,
		Deposed: func() { go running.StaleSessions{Connect: a.server.Connect, Log: a.options.Log}.EndLater(a.life) },
	})
}

// needsNoNewsOf says that nothing depends at the moment on when another instance is heard of: this one is a standby
// that hears its leader, and the other one is a standby too.
func (a *Agent) needsNoNewsOf(name string) bool {
	s := a.status.Get()
	return s.Role == protocol.RoleStandby && s.Streaming && s.Leader != name && !s.Election.LeaderLost
}

// answerOthers puts together what answers the other instances, the operator and the kubelet.
func (a *Agent) answerOthers() {
	a.api = &serve.API{
		Name: a.options.Name, Listen: a.options.Listen, ListenAt: a.exchange.listen, Major: a.configs.get().Major,
		Status: a.status, Config: a.configs.get, Certificate: a.identity.Certificate,
		ClientCAs: func() (map[string]*x509.CertPool, error) {
			return a.identity.ClientCAs(a.configs.get().Operator)
		},
		Post: a.post,
		Ask: func(ctx context.Context, event func(id uint64) machine.Event) (machine.Effect, error) {
			return a.elections.ask(ctx, event)
		},
		Configure: a.configure, Complete: a.forOperator, OnStatus: a.peers.OnStatus,
		Connect: a.server.ConnectTo, GoOnAs: a.exchange.offer, Poolers: a.options.poolers(a),
		Publish: func() { a.publisher.Again() }, Break: a.breaker.Do, Log: a.options.Log,
	}
	vitals := &vitals{status: a.status, silence: func() (time.Duration, bool) {
		if !a.begun.Load() {
			return 0, false
		}
		return a.elections.silence(), true
	}}
	a.probes = &serve.Probes{
		Listen: a.options.Listen, ListenAt: a.exchange.listen, Alive: vitals.alive, Ready: vitals.ready,
	}
	a.metrics = &serve.Metrics{
		Listen: a.options.Listen, ListenAt: a.options.listener, Handler: a.options.metrics(a), Log: a.options.Log,
	}
}

// errStopped ends the actors when the agent is told to stop.
var errStopped = errors.New("told to stop")

// Run waits until the volume is this agent's own, and runs the actors until ctx ends or one of them fails; the
// first out stops all. The end of ctx is a wish: a primary resigns first. When Run returns,
// PostgreSQL has stopped.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.lockVolume(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop before it began
		}
		return err
	}
	a.breaker.Clear()
	defer a.breaker.End() // the volume may be somebody else's next
	group, life := errgroup.WithContext(context.WithoutCancel(ctx))
	a.beginElections(life, a.resume(ctx))
	go a.exchange.identify()
	tidier := &volume.Tidier{Volume: a.options.Volume, Config: a.configs.get, Log: a.options.Log}
	stop := context.AfterFunc(ctx, a.leave)
	defer stop()
	for _, actor := range append(a.watchVolumes(),
		a.lead, a.data.run, a.peers.Run, a.api.Serve, a.probes.Serve, a.metrics.Serve, a.publisher.Run, a.archiver.Run,
		a.identity.Run, a.identity.Show, tidier.Run, a.marker().Run, a.newRelay().Run, a.relays().Run, reapLoop,
		a.promises.run,
	) {
		group.Go(func() error {
			if err := actor(life); err != nil {
				return err
			}
			return errStopped
		})
	}
	if err := group.Wait(); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// beginElections makes the machine, of what is on the volume, and what carries out what it wants, for as long as life.
func (a *Agent) beginElections(life context.Context, before *resumed) {
	a.life = life
	options := machine.Options{
		Name: a.options.Name, Boot: a.status.Get().Boot, HardState: a.states.Get(),
		Config: a.machineConfig(), Rules: machine.DefaultRules(),
		Limits: ha.OwnLimits(),
	}
	a.promises = newPromises(a)
	options.Promised = a.promises.mark.Is()
	began := time.Now()
	if before != nil {
		options.Handover, began = before.machine, before.began
		options.Now = time.Since(began)
		a.status.Change(func(s *protocol.Status) { *s = takenOver(*s, a.taking.Status, options.HardState.Progress()) })
	}
	a.elections = newElections(options, began, a, a.options.Log)
	if a.taking != nil {
		a.elections.first = a.taking.hasBegun
	}
	a.peers.CountFrom(a.elections.began)
	a.ballots = &ballots{find: a.members.find, peers: a.peers, post: a.post, log: a.options.Log}
	a.data = &dataWatch{
		folder: volume.NewDataFolder(a.server.Directory(), a.server.Incomplete), control: a.server.Control,
		status: a.status, post: a.post, log: a.options.Log, life: life,
	}
	a.archiver = a.newArchiver()
	a.demands = &demands{server: a.server, post: a.post, primary: ruleOfPrimary(&a.current), enforced: a.commitsWait}
	a.operate(life)
	a.begun.Store(true)
	if before != nil {
		a.commands.launcher.TakeOver(life, &a.taking.Handed, before.process)
	}
	// One that has come since is not lost.
	a.post(machine.Configured{Config: a.machineConfig()})
}

// operate puts together what works on the server.
func (a *Agent) operate(life context.Context) {
	good := filepath.Join(volume.StateFolder(a.options.Volume), "good.json")
	launcher := &running.Launcher{
		Name: a.options.Name, Volume: a.options.Volume, Server: a.server, ServerLog: a.serverLog, Wanted: a.configs.get,
		HardState: a.states.Get, Good: running.LastKnownGood(good),
		Slots: a.members.slots, Upstream: a.members.upstream, Archived: a.leader.archived, AllStream: a.leader.hasAll,
		Require: a.demands.require, Rule: a.demands.rule, Status: a.status, Flags: &a.flags, Post: a.post,
		Idle: &a.idle, Pressure: a.pressure, Identity: a.identity.Shown, Publish: a.publisher.Want,
		Current: &a.current, Log: a.options.Log,
	}
	x := &commands{
		server: a.server, wal: a.server.WAL(), launcher: launcher, data: a.data, demands: a.demands,
		hardState: a.states.Get, status: a.status, post: a.post, at: a.elections.at,
		publish: func() { a.publisher.Want(protocol.RolePrimary) },
		slots:   func() []string { return running.WithArchive(a.configs.get(), a.members.slots()) },
		hold:    a.hold,
		slack:   a.pressure.Slack,
		current: &a.current, log: a.options.Log, life: life,
	}
	x.copies = &copies{
		server: a.server, mark: a.server.Directory().MarkForked, serverLog: a.options.ServerLog, data: a.data,
		states: a.states, status: a.status, upstream: a.members.upstream, ask: a.elections.askAs, stop: x.stop,
	}
	x.queue = &queue{life: life, do: x.do, ended: x.ended}
	a.commands, a.queue = x, x.queue
}

// ruleOfPrimary finds what makes the primary that runs demand what the quorum asks for now; nil where none runs.
func ruleOfPrimary(current *atomic.Pointer[running.Server]) func() (apply func(context.Context) error) {
	return func() func(context.Context) error {
		if r := running.Leading(current); r != nil {
			return r.Config.ApplyNow
		}
		return nil
	}
}

// commitsWait notes that commits of the primary that runs are seen to wait.
func (a *Agent) commitsWait() {
	if r := running.Leading(&a.current); r != nil {
		r.Config.Unruled.Store(false)
	}
}

// newArchiver archives the WAL while this instance leads.
func (a *Agent) newArchiver() *archive.Loop {
	return &archive.Loop{
		Config: a.configs.get, HardState: a.states.Get, Status: a.status, Identity: identity.Folder(a.options.Run),
		Way: a.toStore, Log: a.options.Log, Primary: func() archive.Primary {
			if r := running.Leading(&a.current); r != nil {
				return r
			}
			return nil
		},
	}
}

// configure takes a new config.
func (a *Agent) configure(config protocol.Config) {
	a.configs.set(config)
	a.identity.Trust(config.Authority)
	a.identity.Follow(config)
	a.post(machine.Configured{Config: a.machineConfig()})
	a.observeServer()
}

// machineConfig is the part of the config that elections depend on.
func (a *Agent) machineConfig() machine.Config {
	return machineConfig(a.configs.get(), a.options.Name, a.options.Cluster != nil)
}

// observeServer has the server that runs looked at at once.
func (a *Agent) observeServer() {
	if r := a.current.Load(); r != nil {
		r.Observe()
	}
}

// observeStandby has a standby looked at at once that has lost its leader, and has it replay what it has.
func (a *Agent) observeStandby(replay bool) {
	if r := a.current.Load(); r != nil {
		r.ObserveStandby(replay)
	}
}

// lead takes part in elections, until nobody needs the instance any more. PostgreSQL has stopped when it returns.
func (a *Agent) lead(ctx context.Context) error {
	ending, err := a.elections.run(ctx)
	if over := a.queue.end(); over != nil {
		<-over
	}
	a.stopForGood(context.WithoutCancel(ctx), ending)
	return err
}

// stopForGood stops the server, and has the archive get what a primary has committed last: who deletes the volumes with
// the Pods, or the whole namespace, has it there. The primary may have stopped a moment ago, to hand over to one that
// was told to stop as well. Where another leads, that one archives the rest.
func (a *Agent) stopForGood(ctx context.Context, ending machine.Ending) {
	if _, err := a.commands.stop(ctx); err != nil {
		a.options.Log.Error("the server could not be stopped in order", "error", err.Error())
		return
	}
	last := a.commands.last
	if last.server == nil || ending == machine.Succeeded {
		return
	}
	if err := a.archiver.Finish(ctx, last.server, last.history, last.end); err != nil {
		a.options.Log.Error("what was committed last is not in the archive", "error", err.Error())
	}
}

// leave is being told to stop: a primary resigns first.
func (a *Agent) leave() {
	a.options.Log.Info("told to stop")
	a.post(machine.LeaveAsked{})
}

// Status is how the instance is.
func (a *Agent) Status() protocol.Status { return a.status.Get() }
