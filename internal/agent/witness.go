package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// Cluster is what an agent asks of the Kubernetes cluster around it. It may be
// away at any time: only the witness of two instances is ever waited for.
type Cluster interface {
	// Publish makes the Services find this instance in a role, and no other as primary.
	Publish(ctx context.Context, role protocol.Role, others []string) error
	// Published is the role in which the Services find this instance.
	Published(ctx context.Context) (protocol.Role, error)
	// Witness is what is on record; its Voter is the identity of the object.
	Witness(ctx context.Context) (ha.Memory, error)
	// Vote asks for the witness's vote, Record gives it the record of the quorum.
	Vote(ctx context.Context, request ha.VoteRequest) (ha.VoteReply, error)
	Record(ctx context.Context, proposal protocol.Proposal) (ha.AcceptReply, error)
	// Change changes what is on record, unless change refuses (false), and says what is on record then.
	Change(ctx context.Context, change func(ha.Memory) (ha.Memory, bool)) (ha.Memory, error)
}

// Times about the witness: how often it is looked at while that matters, how long
// a look may take and counts, how long a majority may be silent before it matters and the leader
// puts on record that it holds on, and for how long who is elected asks whether another does.
const (
	witnessInterval   = 250 * time.Millisecond
	witnessDeadline   = time.Second
	witnessCounts     = 1500 * time.Millisecond
	unconfirmedLooks  = 600 * time.Millisecond
	overtakeDeadline  = 300 * time.Millisecond
	overtakeConflicts = 10 * time.Millisecond // until it is written again after another has
)

// errOvertaken says that somebody else has changed what is on record meanwhile.
var errOvertaken = errors.New("somebody else has changed it meanwhile")

// errNoCluster says that there is no Kubernetes around.
var errNoCluster = errors.New("there is no Kubernetes API here")

// witness looks at what is on record in the Kubernetes API, but only while
// somebody wants to know: at rest the API is not asked.
type witness struct {
	cluster Cluster
	wanted  atomic.Bool
	// holds is the term in which this instance holds on, released one in which it did, 0 for none.
	holds, released atomic.Uint64
	seen            atomic.Pointer[sighting]
	wake            chan struct{}
	// changed is called when something was seen that was not known.
	changed func()
}

// sighting is what was seen of the witness, asked for at a time.
type sighting struct {
	at      time.Time
	ballot  ha.Ballot
	record  ha.Record
	holding uint64
}

func sighted(at time.Time, m ha.Memory) *sighting {
	return &sighting{at: at, ballot: m.Ballot, record: m.Record, holding: m.Holding}
}

func (w *witness) want(wanted bool) {
	if was := w.wanted.Swap(wanted); wanted && !was {
		w.hurry()
	}
}

// hurry has it look at once.
func (w *witness) hurry() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hold has the primary of a term hold on. With on false it has its majority again, or is no primary any more.
func (w *witness) hold(term uint64, on bool) {
	if on {
		w.holds.Store(term)
		w.released.Store(0)
		return
	}
	w.holds.Store(0)
	if term > 0 && w.last().holding == term && w.released.Swap(term) != term {
		w.hurry() // somebody may wait for it
	}
}

func (w *witness) last() sighting {
	if s := w.seen.Load(); s != nil {
		return *s
	}
	return sighting{}
}

// run looks while that is wanted, until ctx ends.
func (w *witness) run(ctx context.Context) error {
	if w.cluster == nil {
		<-ctx.Done()
		return nil
	}
	for {
		if !w.wanted.Load() {
			select {
			case <-ctx.Done():
				return nil
			case <-w.wake:
			}
		}
		w.look(ctx)
		pause := time.NewTimer(witnessInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-pause.C:
		}
	}
}

func (w *witness) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, witnessDeadline)
	defer cancel()
	asked, before := time.Now(), w.last()
	m, err := w.ask(ctx, before)
	if err != nil {
		return // unknown; nothing is concluded from one look
	}
	w.seen.Store(sighted(asked, m))
	if before.ballot != m.Ballot || before.holding != m.Holding || asked.Sub(before.at) > witnessCounts {
		w.changed()
	}
}

// ask looks, and puts on record that this instance holds on, or no longer does.
func (w *witness) ask(ctx context.Context, before sighting) (ha.Memory, error) {
	if term := w.holds.Load(); term > 0 && before.holding != term {
		return w.cluster.Change(ctx, func(m ha.Memory) (ha.Memory, bool) { return ha.Hold(m, term) })
	}
	if term := w.released.Load(); term > 0 {
		m, err := w.cluster.Change(ctx, func(m ha.Memory) (ha.Memory, bool) { return ha.Release(m, term), true })
		if err == nil {
			w.released.CompareAndSwap(term, 0)
		}
		return m, err
	}
	return w.cluster.Witness(ctx)
}

// overtake asks whether a leader of a term before the one that was won holds on, and sees to it that it can't for much
// longer. It asks until it has an answer, or ctx ends.
func (w *witness) overtake(ctx context.Context, won ha.Ballot, alone bool) (wait, ok bool, err error) {
	for {
		asked := time.Now()
		m, err := w.cluster.Change(ctx, func(m ha.Memory) (next ha.Memory, may bool) {
			next, wait, ok = ha.Overtake(m, won, alone)
			return next, ok
		})
		if err == nil {
			w.seen.Store(sighted(asked, m))
			return wait, ok, nil
		}
		if !errors.Is(err, errOvertaken) || !sleep(ctx, overtakeConflicts) {
			return false, true, err
		}
	}
}

func (w *witness) vote(ctx context.Context, request ha.VoteRequest) (ha.VoteReply, error) {
	if w.cluster == nil {
		return ha.VoteReply{}, errNoCluster
	}
	if !request.PreVote && !request.Confirm {
		return w.cluster.Vote(ctx, request)
	}
	asked := time.Now()
	m, err := w.cluster.Witness(ctx)
	if err != nil {
		return ha.VoteReply{}, err
	}
	w.seen.Store(sighted(asked, m))
	voting := ha.Voting{Memory: m, Witness: true}
	if request.Confirm {
		_, reply := ha.Confirm(voting, request)
		return reply, nil
	}
	return ha.Consider(voting, request), nil
}

func (w *witness) record(ctx context.Context, proposal protocol.Proposal) (ha.AcceptReply, error) {
	if w.cluster == nil {
		return ha.AcceptReply{}, errNoCluster
	}
	return w.cluster.Record(ctx, proposal)
}
