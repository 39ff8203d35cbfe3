// Package publish tells the cluster around an instance in which role it is, so that clients find it.
package publish

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// Cluster is where roles are published. It may be away at any time.
type Cluster interface {
	// Publish makes the Services find this instance in a role, and no other as primary.
	Publish(ctx context.Context, wish Wish, others []string) error
	// Published is the role in which the Services find this instance.
	Published(ctx context.Context) (protocol.Role, error)
	// SetRelay lets the Service lead to an instance that passes clients on, or not.
	SetRelay(ctx context.Context, instance string, leads bool) error
	// MarkRoom says of this instance that its volume gets full, and how that is; "" for not.
	MarkRoom(ctx context.Context, room string) error
}

// Wish is the role that an instance is to be found in.
type Wish struct {
	Role protocol.Role
	// Term is that which a primary leads, and of another the highest of which it knows.
	Term uint64
	// Anyway says that a later term that is on record does not count.
	Anyway bool
}

// ErrLaterTerm says that a leader of a later term has written its role already: this one is no primary any more.
var ErrLaterTerm = errors.New("a leader of a later term is on record there")

// laterLasts is for how long a primary lets a later term count that is on record in the cluster, and that no other
// instance tells it of. Who leads a later term deposes it in far less time. After that the record is wrong: somebody
// has written it by hand, or the Pods are older than the data.
const laterLasts = 10 * time.Second

// publishDeadline bounds one attempt to tell the cluster the role.
const publishDeadline = 2 * time.Second

// firstRetry and publishRetry are the shortest and the longest pause between attempts: clients wait for it.
const (
	firstRetry   = 250 * time.Millisecond
	publishRetry = time.Second
)

// firstCheck and lastCheck are after how long a primary looks whether the cluster still has it as that: soon after it
// was published, when the one before may still be at it, and then less and less often.
const (
	firstCheck = time.Second
	lastCheck  = time.Minute
)

// publication is what the cluster was told last.
type publication struct {
	role protocol.Role
	term uint64
	// check is when to look whether it is still so, pause how long that was.
	check time.Time
	pause time.Duration
}

// Options are what a publisher needs to know.
type Options struct {
	// Name is the instance's.
	Name string
	// Cluster is nil where there is none.
	Cluster Cluster
	// HardState is what the instance has promised, Others are the names of the others, Role is what its server is.
	HardState func() ha.HardState
	Others    func() []string
	Role      func() protocol.Role
	// Deposed is called when a former primary has published that it is none. Until then the Services led clients to it
	// as to the primary.
	Deposed func()
	Log     *slog.Logger
}

// Publisher publishes the role of one instance.
type Publisher struct {
	options Options
	// wishes takes the role to publish.
	wishes chan protocol.Role
	// published is the role in which the Services may lead here; nil where that is not known.
	published atomic.Pointer[protocol.Role]
	// later is since when a later term than that of this instance is on record, zero where none is.
	later time.Time
	// again says that the Services are known not to lead here, or to lead to others as well.
	again atomic.Bool
}

// New makes a publisher that nobody has wished anything from yet.
func New(options Options) *Publisher {
	return &Publisher{options: options, wishes: make(chan protocol.Role, 1)}
}

// recall finds out in which role the Services lead here, by the word of a process before this one.
func (p *Publisher) recall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	if role, err := p.options.Cluster.Published(ctx); err == nil {
		p.published.CompareAndSwap(nil, &role)
	}
}

// note notes in which role the Services may lead here, and tells when a former primary is known as none.
func (p *Publisher) note(role protocol.Role) {
	before := p.published.Swap(&role)
	if before != nil && *before == protocol.RolePrimary && role != protocol.RolePrimary {
		p.options.Deposed()
	}
}

// Want asks for a role to be published. The last wish counts.
func (p *Publisher) Want(role protocol.Role) {
	for {
		select {
		case p.wishes <- role:
			return
		default:
		}
		select {
		case <-p.wishes: // a former wish
		default:
		}
	}
}

// Again has the role of a primary published with the next wish: the cluster does not have it so. Of another it changes
// nothing.
func (p *Publisher) Again() { p.again.Store(true) }

// Run tells the cluster the role of this instance, once for each change,
// apart from the elections: an API server that is away must not slow it down.
func (p *Publisher) Run(ctx context.Context) error {
	var last publication
	if p.options.Cluster != nil {
		go p.recall(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case role := <-p.wishes:
			term, leads := p.led()
			switch {
			case p.options.Cluster == nil, role == protocol.RolePrimary && !leads:
				// One over whom another is being elected has nothing to publish: it would take
				// the Services from that one.
			case role != last.role, role == protocol.RolePrimary && (term != last.term || p.again.Load()):
				p.again.Store(false)
				if p.publishUntilDone(ctx, role) {
					last = publication{role, term, time.Now().Add(firstCheck), firstCheck}
				}
			case role == protocol.RolePrimary && time.Now().After(last.check):
				p.checkPublished(ctx, &last)
			}
		}
	}
}

// led is the term that this instance leads.
func (p *Publisher) led() (term uint64, leads bool) {
	m := p.options.HardState()
	return m.Won, m.Won > 0 && m.Won == m.Ballot.Term && m.Ballot.Leader == p.options.Name
}

// checkPublished looks whether the cluster has this instance as primary still. If not, it is published
// again with the next wish.
func (p *Publisher) checkPublished(ctx context.Context, last *publication) {
	last.pause = min(2*last.pause, lastCheck)
	last.check = time.Now().Add(last.pause)
	one, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	role, err := p.options.Cluster.Published(one)
	if err != nil {
		return // unknown, and looked at again
	}
	if role != protocol.RolePrimary {
		p.options.Log.Warn("somebody has taken the primary's role from this instance's Pod", "role", string(role))
		last.role = protocol.RoleNone
	}
}

// outlasts says whether a later term has been on record for so long that it does not count: is says that it was when
// the role was written last.
func (p *Publisher) outlasts(is bool) bool {
	switch {
	case !is:
		p.later = time.Time{}
	case p.later.IsZero():
		p.later = time.Now()
	}
	return is && time.Since(p.later) > laterLasts
}

// publishUntilDone tries until it works or there is another wish. A primary that
// leads no more does not try on.
func (p *Publisher) publishUntilDone(ctx context.Context, role protocol.Role) bool {
	if role == protocol.RolePrimary {
		p.note(role) // also of an attempt that is given up it is not known that it has failed
	}
	wish := Wish{Role: role, Term: p.options.HardState().Ballot.Term, Anyway: p.outlasts(!p.later.IsZero())}
	for retry := firstRetry; ; retry = min(2*retry, publishRetry) {
		one, cancel := context.WithTimeout(ctx, publishDeadline)
		err := p.options.Cluster.Publish(one, wish, p.options.Others())
		cancel()
		wish.Anyway = p.outlasts(errors.Is(err, ErrLaterTerm))
		if err == nil {
			p.options.Log.Info("the role is published", "role", string(role))
			p.note(role)
			return true
		}
		p.options.Log.Warn("the role could not be published", "role", string(role), "error", err.Error())
		if !pause.For(ctx, retry) || len(p.wishes) > 0 || p.options.Role() != role {
			return false
		}
		if _, leads := p.led(); role == protocol.RolePrimary && !leads {
			return false
		}
	}
}
