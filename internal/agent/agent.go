// Package agent is the process with id 1 in an instance's Pod. It owns the
// postmaster: it makes the data, configures, starts, follows and stops it, and
// says how it is. It observes, lets package ha decide, and acts. It must not
// import the operator's packages; of Kubernetes it only knows the labels of the
// SampleDB's own Pods and its Lease.
package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Options say where an agent finds its things.
type Options struct {
	// Name is the instance's.
	Name string
	// ConfigFile is the protocol.Config to start from, Authority the folder with
	// the SampleDB's authority (ca.crt, ca.key).
	ConfigFile, Authority string
	// Volume is the persistent volume, Run a folder in memory.
	Volume, Run string
	// Listen is the address to listen on, "" for all. Address is what the others
	// reach this instance by, if that is known.
	Listen, Address string
	// Restored is the id of the restore in place whose data the instance must have, "" for none.
	Restored string
	// Cluster is the Kubernetes around this instance; nil where there is none.
	Cluster Cluster
	Log     *slog.Logger
	// ServerLog takes PostgreSQL's own log.
	ServerLog io.Writer
}

// reasonStarting and messageStarting are those of an agent that has decided nothing yet.
const reasonStarting, messageStarting = "Starting", "the agent is starting"

// durabilityAsync is the durability in which the primary alone acknowledges.
const durabilityAsync = "async"

// Agent runs one instance.
type Agent struct {
	Options
	// volume is the right to work on it; the memory is read when it is there, and elections begin.
	volume    *Lock
	server    *postgres.Server
	data      *dataFolder
	identity  *identity
	memory    *memory
	peers     *peers
	elections *elections
	commands  *commands
	// begun says that elections have begun: before that, nobody is heard.
	begun atomic.Bool
	// current is the server that runs, nil while none does.
	current atomic.Pointer[running]
	// requirement is by which commits wait.
	requirement atomic.Pointer[ha.Rule]
	// undemand gives up the demand that is being carried out. Only the elections' own goroutine uses it, as refused, the
	// last wish that could not be met.
	undemand  context.CancelFunc
	demanding sync.Mutex // held while a demand is carried out
	refused   string
	// publish takes the role to publish.
	publish chan protocol.Role
	// life lasts as long as the actors do.
	life context.Context //nolint:containedctx // for what they start and do not wait for
	// full says whether the volume has no room for WAL, stale whether a standby has not streamed for long that should.
	full, stale atomic.Bool

	mutex   sync.Mutex
	config  protocol.Config
	status  protocol.Status
	renewed bool // there is a new certificate
}

// New reads the config and looks for PostgreSQL's programs. The volume is not touched before Run.
func New(ctx context.Context, options Options) (*Agent, error) {
	config, err := readConfig(options.ConfigFile)
	if err != nil {
		return nil, err
	}
	programs, err := postgres.FindPrograms(ctx, config.Major)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		Options: options,
		config:  config,
		publish: make(chan protocol.Role, 1),
	}
	a.server = &postgres.Server{
		Programs: programs, Volume: options.Volume, Run: options.Run,
		Listen: listenAddresses(options.Listen), Port: naming.PortPostgreSQL,
	}
	a.data = &dataFolder{server: a.server}
	a.status = protocol.Status{
		Name: options.Name, Protocol: protocol.Version, Boot: rand.Text(), Reason: reasonStarting, Message: messageStarting,
		ServerVersion: programs.Version, Election: protocol.Election{Limits: ha.OwnLimits()},
	}
	if a.identity, err = newIdentity(options, config); err != nil {
		return nil, err
	}
	a.identity.renewed = a.useRenewed
	roots, err := a.identity.roots()
	if err != nil {
		return nil, err
	}
	show := func() (tls.Certificate, error) { return a.identity.certificate() }
	a.peers = newPeers(options.Name, protocol.NewClient(pki.ClientTLS(show, roots, naming.IdentityInstance), naming.PortAgent), a.post)
	a.peers.members = a.constituents
	a.commands = &commands{do: a.do, ended: a.ended}
	return a, nil
}

func listenAddresses(listen string) string {
	if listen == "" {
		return "*"
	}
	return listen
}

func readConfig(path string) (protocol.Config, error) {
	var config protocol.Config
	text, err := os.ReadFile(path)
	if err != nil {
		return config, fmt.Errorf("read the agent's config: %w", err)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("understand the agent's config %s: %w", path, err)
	}
	return config, nil
}

// errStopped ends the actors when the agent is told to stop.
var errStopped = errors.New("told to stop")

// Run waits until the volume is this agent's own, and runs the actors until ctx ends or one of them fails; the
// first out stops all. The end of ctx is a wish: a primary resigns first. When Run returns,
// PostgreSQL has stopped.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.own(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop before it began
		}
		return err
	}
	group, life := errgroup.WithContext(context.WithoutCancel(ctx))
	a.life, a.commands.life = life, life
	a.beginElections()
	stop := context.AfterFunc(ctx, a.leave)
	defer stop()
	for _, actor := range []func(context.Context) error{
		a.lead, a.dataLoop, a.peers.run, a.serveAgent, a.serveProbes, a.publishLoop, a.archiveLoop, a.identity.renewLoop, a.tidyLoop,
		a.volumeLoop, reapLoop,
	} {
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

// beginElections makes the machine, of what is on the volume.
func (a *Agent) beginElections() {
	a.elections = newElections(machine.Options{
		Name: a.Name, Boot: a.Status().Boot, Memory: a.memory.Get(), Config: a.machineConfig(a.currentConfig()),
		Rules: machine.DefaultRules(), Limits: ha.OwnLimits(),
	}, a, a.Log)
	a.peers.began = a.elections.began
	a.begun.Store(true)
	a.post(machine.Configured{Config: a.machineConfig(a.currentConfig())}) // one that has come since is not lost
}

// lead takes part in elections, until nobody needs the instance any more. PostgreSQL has stopped when it returns.
func (a *Agent) lead(ctx context.Context) error {
	err := a.elections.run(ctx)
	if over := a.commands.end(); over != nil {
		<-over
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDeadline)
	defer cancel()
	if _, stopped := a.stop(last); stopped != nil {
		a.Log.Error("the server could not be stopped in order", "error", stopped.Error())
	}
	return err
}

// leave is being told to stop: a primary resigns first.
func (a *Agent) leave() {
	a.Log.Info("told to stop")
	a.post(machine.LeaveAsked{})
}

// machineConfig is what of a config elections depend on.
func (a *Agent) machineConfig(config protocol.Config) machine.Config {
	c := machine.Config{
		SystemIdentifier: config.SystemIdentifier, Async: config.Durability == durabilityAsync, Witness: config.Witness, API: a.Cluster != nil,
	}
	for _, m := range config.Members {
		c.Members = append(c.Members, m.Name)
	}
	return c
}

// Config is the config as last given.
func (a *Agent) currentConfig() protocol.Config {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.config
}

// constituents are the members, and those that are none any more but still have
// a vote: until the record says otherwise they acknowledge, vote, and may even lead.
func (a *Agent) constituents() []protocol.Member {
	config := a.currentConfig()
	all := slices.Clone(config.Members)
	for _, voter := range a.memory.Get().Record.Voters() {
		name := voter.Instance()
		if slices.ContainsFunc(all, func(m protocol.Member) bool { return m.Name == name }) {
			continue
		}
		ordinal, _ := naming.Ordinal(name)
		all = append(all, protocol.Member{
			Name: name, Host: naming.InstanceHost(config.Cluster, config.Namespace, ordinal), Address: a.peers.lastAddress(name),
		})
	}
	return all
}

// useRenewed has the running server read the new certificate.
func (a *Agent) useRenewed() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.renewed = true
}

// take answers whether something was asked for, once.
func (a *Agent) take(asked *bool) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := *asked
	*asked = false
	return was
}

// Status is how the instance is.
func (a *Agent) Status() protocol.Status {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.status
}

// report changes the status.
func (a *Agent) report(change func(*protocol.Status)) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	change(&a.status)
	a.status.Number++
}

// roleSilence is how long the elections may not move before the instance is not called ready any more.
const roleSilence = 15 * time.Second

// maxSilence is how long they may not before the kubelet may think that the agent hangs.
const maxSilence = 60 * time.Second

// alive says that the agent does not hang. One that waits for its volume does not.
func (a *Agent) alive() bool { return !a.begun.Load() || a.elections.silence() < maxSilence }

// ready says whether the instance does what its role asks, as seen by a query not long ago.
func (a *Agent) ready() bool {
	return a.begun.Load() && a.Status().Ready && a.elections.silence() < roleSilence
}
