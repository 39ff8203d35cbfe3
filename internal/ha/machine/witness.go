package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// How often the witness is looked at while that matters, and how long an answer is waited for before it is asked again.
const (
	witnessInterval = 250 * time.Millisecond
	witnessDeadline = time.Second
	// witnessSeldom is how often where the leader has been lost for longer than electionTime: still so often that what
	// it says counts (witnessCounts).
	witnessSeldom = time.Second
)

// witness is what is known of the record in the Kubernetes API. It is looked at only while that matters: at
// rest the API is not asked.
type witness struct {
	// seen is what was on record when it was asked for, at, or never.
	seen ha.HardState
	at   time.Duration
	took time.Duration
	// wanted says that it is to be looked at, look the question that is open, asked since when.
	wanted bool
	look   uint64
	asked  time.Duration
	sent   map[uint64]time.Duration
	// releases is the term in which this instance had the read lease, to be taken off the record, released the one that
	// the open question is to take off; 0 for none.
	releases, released uint64
}

// operate asks the witness for something.
func (i *Instance) operate(o ha.WitnessOperation) uint64 {
	id := i.nextID()
	if i.witness.sent == nil {
		i.witness.sent = map[uint64]time.Duration{}
	}
	i.witness.sent[id] = i.now
	i.emit(AskWitness{id, o})
	return id
}

// witnessAnswered takes in what is on record, and gives the answer to who has asked.
func (i *Instance) witnessAnswered(e WitnessAnswered) {
	w := &i.witness
	if sent, ok := w.sent[e.ID]; ok {
		w.took = i.now - sent
		delete(w.sent, e.ID)
	}
	if !e.Failed && (w.at == never || w.at < e.Asked) {
		w.seen, w.at = e.HardState, e.Asked
	}
	if w.look == e.ID {
		w.look = 0
		if w.released > 0 && w.released == w.releases && !e.Failed {
			w.releases = 0
		}
	}
	i.witnessVoted(e)
	i.preemptAnswered(e)
	i.configurationAtWitness(e)
}

// observeWitness looks at the witness while that matters, and puts on record there that this instance has the read
// lease, or no longer does.
func (i *Instance) observeWitness() {
	if !i.config.API {
		return
	}
	alone := i.needsReadLease()
	holds := alone && i.Leads() && i.server.role == ha.ServerPrimary
	i.chooseRelease(holds)
	if !i.readsWitness(alone) {
		return
	}
	w, operation := &i.witness, ha.WitnessOperation{}
	switch w.released = 0; {
	case holds && w.seen.ReadLease != i.hardState.Won:
		operation.ReadLease = i.hardState.Won
	case w.releases > 0:
		operation.ReleaseReadLease, w.released = w.releases, w.releases
	}
	w.asked, w.look = i.now, i.operate(operation)
}

// needsReadLease says whether no majority has answered for so long that a leader is to take the read lease.
func (i *Instance) needsReadLease() bool {
	local := ha.Local{}
	i.measureQuorum(&local)
	return local.Alone > readLeaseAfter
}

// chooseRelease notes that this instance no longer has the read lease though it is on record that it does: it has its
// majority again, or has stopped. Somebody may be waiting for that.
func (i *Instance) chooseRelease(holds bool) {
	w, won := &i.witness, i.hardState.Won
	stopped := i.server.role != ha.ServerPrimary
	switch {
	case holds:
		w.releases = 0
	case w.at != never && won > 0 && w.seen.ReadLease == won && (stopped || i.Leads()):
		w.releases = won
	default:
	}
}

// readsWitness says whether the witness is to be asked now: while a leader is lost, is alone, or is about to leave.
func (i *Instance) readsWitness(alone bool) bool {
	w, leads := &i.witness, i.Leads()
	leaves := i.wish.Resign || i.watch.failed != "" || i.server.seen.Failure != "" || i.watch.unwritten > ha.SlowLimit
	before := w.wanted
	w.wanted = leads && (leaves || alone) || !leads && i.now > i.watch.led || w.releases > 0
	hurry := w.wanted && !before
	open := w.look != 0 && i.now-w.asked < witnessDeadline
	interval := witnessInterval
	if !leads && i.ago(i.watch.lost) > electionTime {
		interval = witnessSeldom
	}
	return w.wanted && !open && (hurry || i.now-w.asked >= interval)
}
