// Package machine is what one instance does about elections, as a deterministic state machine: Step takes in an event
// and returns what is to be done. It has no I/O, no clock, no goroutine, and knows neither Kubernetes nor how a server
// is run. The agent carries out its effects with real disks, networks and servers, the simulation with simulated ones.
//
// What is decided is package ha's: this package only remembers, asks, waits and counts. Its words
// are those of docs/ha.md and its siblings.
package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// Rules are the pure functions that the machine goes by. Tests replace them to see that their loss is noticed.
type Rules struct {
	Decide   func(ha.View) ha.Decision
	Consider func(ha.Voting, ha.VoteRequest) ha.VoteReply
	Grant    func(ha.Voting, ha.VoteRequest) ha.VoteReply
	// CommitRule is by which commits wait under a configuration.
	CommitRule func(ha.Configuration, ha.Voter) ha.Rule
	// PlanQuorum is the next quorum, KeepsMajority says that the leader has a majority of it.
	PlanQuorum    func(ha.Electorate) (*ha.Quorum, string)
	KeepsMajority func(ha.Electorate, ha.Quorum) bool
	// Stands says that a candidate may still win a term.
	Stands func(m ha.HardState, term uint64) bool
	// PreVotes says that a candidate asks before it stands. No invariant needs it.
	PreVotes bool
}

// DefaultRules are those of package ha.
func DefaultRules() Rules {
	return Rules{
		Decide: ha.Decide, Consider: ha.Consider, Grant: ha.Grant, CommitRule: ha.CommitRule,
		PlanQuorum: ha.PlanQuorum, KeepsMajority: ha.KeepsMajority, Stands: ha.StillStands, PreVotes: true,
	}
}

// Options are what an Instance begins with.
type Options struct {
	Name string
	// Boot names this process among those of the instance.
	Boot string
	// HardState is what is on disk.
	HardState ha.HardState
	Config    Config
	Rules     Rules
	// Limits are this release's times, which fit with all others' by what each says.
	Limits ha.Limits
	// Random is where pauses differ between instances.
	Random *rand.Rand
	// Now is the time, from any beginning, as in Step.
	Now time.Duration
	// Promised says that the process before has promised slack (SlackSeen).
	Promised bool
	// Handover is what the program before has told that had this process, nil for none. It must fit the hard state.
	Handover *Handover
}

// Instance is the state machine. It is not safe for concurrent use.
type Instance struct {
	name, boot string
	rules      Rules
	own        ha.Limits
	random     *rand.Rand
	config     Config
	now        time.Duration
	effects    []Effect
	// moved says that the event of this step may change what is decided.
	moved bool
	ids   uint64

	// began is how far the hard state had come when the process began.
	began ha.Progress
	// hardState is what is on disk, storing what is being written, waiting the events that wait for that.
	hardState ha.HardState
	storing   *storing
	waiting   []Event
	// peers and fitted are what follows from config, hard state and news (Peers, fitLimits).
	peers  []string
	fitted ha.Limits

	news   news
	watch  watch
	server server
	// command is what is being done with the server, fence the end of it.
	command *command
	fence   *command
	trouble trouble
	last    ha.Decision
	said    uint64
	told    decisives

	campaign   *campaign
	preemption *preemption
	comeback   *comeback
	slack      slack
	vain       vain
	votes      []pendingVote
	quorum     quorum
	witness    witness
	wish       wish
	successor  string
}

// New is the machine of an instance whose process has just started: no server runs, unless one is handed over.
func New(o Options) *Instance {
	i := &Instance{
		name: o.Name, boot: o.Boot, rules: o.Rules, own: o.Limits, random: o.Random, config: o.Config, now: o.Now,
		hardState: o.HardState, began: o.HardState.Progress(),
	}
	i.news = newNews()
	i.watch = newWatch(o.HardState, o.Now)
	i.witness.at, i.witness.asked = never, never
	i.slack = newSlack(o.Now, o.Promised)
	if o.Handover != nil {
		i.takeOver(o.Handover)
	}
	i.findPeers()
	return i
}

// Step takes in what has happened, and returns what is to be done. now is the instance's own, monotonic.
func (i *Instance) Step(now time.Duration, e Event) []Effect {
	i.now, i.effects, i.moved = now, nil, true
	if i.handle(e); !i.moved {
		return i.effects // it says nothing new
	}
	i.observe()
	i.passTime()
	i.advance()
	said := i.peer(i.View())
	i.broadcastNews(said)
	i.observeServer(said)
	return i.effects
}

// handle takes in an event. What may need the hard state waits while that is being written.
func (i *Instance) handle(e Event) {
	if i.storing != nil && (needsHardState(e) || i.followsWaiting(e)) {
		i.waiting = append(i.waiting, e)
		return
	}
	switch e := e.(type) {
	case Tick:
	case Configured:
		i.config = e.Config
		i.findPeers()
	case PeerAnswered, PeerAnnounced, PeerRefused:
		i.handleNews(e)
	case Stored:
		i.stored(e)
	case Done:
		i.done(e)
	case Killed:
		i.killed(e)
	case DataSeen, ServerSeen, ServerEnded, VolumeSeen:
		i.handleServerSeen(e)
	case SlackSeen:
		i.slack.see(i.now, min(e.Own, MaxSlack), min(e.Leaders, MaxSlack))
	case ResignAsked, LeaveAsked, RestartAsked:
		i.wishFor(e)
	default:
		i.handleMessage(e)
	}
}

// passTime ends what has waited for long enough.
func (i *Instance) passTime() {
	i.votesExpire()
	i.dropWish()
	i.awaitPreemption()
	i.countVotes()
	i.countConfirmations()
}

// handleMessage takes in what others ask and answer about elections.
func (i *Instance) handleMessage(e Event) {
	switch e := e.(type) {
	case VoteAsked:
		i.answerVote(e)
	case VoteAnswered:
		i.voteAnswered(e)
	case ConfigurationProposed:
		i.answerConfiguration(e)
	case ConfigurationAnswered:
		i.configurationAnswered(e)
	case WitnessAnswered:
		i.witnessAnswered(e)
	case DiscardAsked:
		i.answerDiscard(e)
	}
}

// needsHardState says that an event may change the hard state, or is judged by it.
func needsHardState(e Event) bool {
	switch e.(type) {
	case VoteAsked, VoteAnswered, ConfigurationProposed, ConfigurationAnswered, Done, DiscardAsked:
		return true
	}
	return false
}

// followsWaiting says that an event is the end of a server whose start waits to be taken in: it comes after that.
func (i *Instance) followsWaiting(e Event) bool {
	end, is := e.(ServerEnded)
	return is && slices.ContainsFunc(i.waiting, func(w Event) bool {
		done, is := w.(Done)
		return is && done.ID == end.Run
	})
}

// storing is a hard state that is being written, and what follows when it is on disk, or could not be written.
type storing struct {
	id        uint64
	hardState ha.HardState
	then      func()
	failed    func(err string)
}

// store puts a hard state on disk, and goes on then. A server that must not go on by it is ended
// first: that waits for no disk.
func (i *Instance) store(m ha.HardState, then func()) {
	if i.server.role == ha.ServerPrimary && !leads(m, i.name) && m.Ballot.Leader != i.name {
		i.fenceServer("a later term is known")
	}
	i.write(Store{HardState: m}, then)
}

func (i *Instance) write(s Store, then func()) {
	s.ID, s.TermHistory = i.nextID(), !slices.Equal(s.HardState.TermHistory, i.hardState.TermHistory)
	i.storing = &storing{id: s.ID, hardState: s.HardState, then: then}
	i.emit(s)
}

// stored goes on when a hard state is on disk. One that could not be written is forgotten: what led to it comes again.
func (i *Instance) stored(e Stored) {
	s := i.storing
	if s == nil || s.id != e.ID {
		return
	}
	i.storing = nil
	i.trouble.record(i, "", e.Err)
	if e.Err != "" {
		i.campaign, i.preemption, i.comeback = nil, nil, nil
		i.log("the hard state could not be written", "error", e.Err)
		if s.failed != nil {
			s.failed(e.Err)
		}
	} else {
		i.hardState = s.hardState
		i.findPeers()
		if s.then != nil {
			s.then()
		}
	}
	for len(i.waiting) > 0 && i.storing == nil {
		next := i.waiting[0]
		i.waiting = i.waiting[1:]
		i.handle(next)
	}
}

func (i *Instance) nextID() uint64 {
	i.ids++
	return i.ids
}

func (i *Instance) emit(e Effect) { i.effects = append(i.effects, e) }

func (i *Instance) log(message string, values ...any) { i.emit(Log{message, values}) }

// HardState is what is on disk.
func (i *Instance) HardState() ha.HardState { return i.hardState }

// Decision is what was decided last.
func (i *Instance) Decision() ha.Decision { return i.last }

// Leads says whether this instance leads the highest term that it knows.
func (i *Instance) Leads() bool { return leads(i.hardState, i.name) }

// leads says whether by a hard state its instance leads.
func leads(m ha.HardState, name string) bool {
	return m.Won > 0 && m.Won == m.Ballot.Term && m.Ballot.Leader == name
}

// String is the state for people.
func (i *Instance) String() string {
	return fmt.Sprintf("last %+v, server %+v, command %+v, fence %v, storing %v, trouble %+v, campaign %+v, "+
		"takeover %+v, comeback %+v, quorum %+v, witness %+v, wish %+v, watch %+v, waiting %d, votes %d", i.last,
		i.server, i.command, i.fence != nil, i.storing != nil, i.trouble, i.campaign, i.preemption, i.comeback,
		i.quorum, i.witness, i.wish, i.watch, len(i.waiting), len(i.votes))
}
