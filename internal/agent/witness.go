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
}

// Times about the witness: how often it is looked at while that matters, how long
// a look may take and counts, and how long a majority may be silent before it matters.
const (
	witnessInterval  = 250 * time.Millisecond
	witnessDeadline  = time.Second
	witnessCounts    = 1500 * time.Millisecond
	unconfirmedLooks = 600 * time.Millisecond
)

// errNoCluster says that there is no Kubernetes around.
var errNoCluster = errors.New("there is no Kubernetes API here")

// witness looks at what is on record in the Kubernetes API, but only while
// somebody wants to know: at rest the API is not asked.
type witness struct {
	cluster Cluster
	wanted  atomic.Bool
	seen    atomic.Pointer[sighting]
	wake    chan struct{}
	// changed is called when something was seen that was not known.
	changed func()
}

// sighting is what was seen of the witness, asked for at a time.
type sighting struct {
	at     time.Time
	ballot ha.Ballot
	record ha.Record
}

func (w *witness) want(wanted bool) {
	if was := w.wanted.Swap(wanted); wanted && !was {
		select {
		case w.wake <- struct{}{}:
		default:
		}
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
		if !sleep(ctx, witnessInterval) {
			return nil
		}
	}
}

func (w *witness) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, witnessDeadline)
	defer cancel()
	asked := time.Now()
	m, err := w.cluster.Witness(ctx)
	if err != nil {
		return // unknown; nothing is concluded from one look
	}
	before := w.last()
	w.seen.Store(&sighting{at: asked, ballot: m.Ballot, record: m.Record})
	if before.ballot != m.Ballot || asked.Sub(before.at) > witnessCounts {
		w.changed()
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
	w.seen.Store(&sighting{at: asked, ballot: m.Ballot, record: m.Record})
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
