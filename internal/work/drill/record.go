package drill

import (
	"slices"
	"time"
)

// record is what one client has seen. It has no clock of its own.
type record struct {
	// last is when a write was acknowledged last, failed when one failed last; zero for never.
	last, failed time.Time
	// since is from when on the outage and the errors count.
	since time.Time
	// outage is the longest time between two acknowledged writes.
	outage time.Duration
	// acknowledged are the numbers of the writes, also of those before since.
	acknowledged []int64
	// at is when each of these was.
	at         []time.Time
	errors     int64
	firstError string
	// reads are those that were answered, stale those of them that lacked a write which was acknowledged before.
	reads, stale int64
}

// ack notes that a write was acknowledged.
func (r *record) ack(n int64, at time.Time) {
	r.acknowledged, r.at = append(r.acknowledged, n), append(r.at, at)
	if !r.since.IsZero() {
		r.outage = max(r.outage, at.Sub(r.last))
	}
	r.last = at
}

// fail notes that a connection or a write has failed.
func (r *record) fail(err error, at time.Time) {
	r.failed = at
	if r.since.IsZero() {
		return
	}
	r.errors++
	if r.firstError == "" {
		r.firstError = err.Error()
	}
}

// newest is the number of the write that was acknowledged last, 0 for none.
func (r *record) newest() int64 {
	if len(r.acknowledged) == 0 {
		return 0
	}
	return r.acknowledged[len(r.acknowledged)-1]
}

// read notes the answer of a read, which has to have all writes up to the one that was the newest when it began.
func (r *record) read(answer, newest int64) {
	if r.since.IsZero() {
		return
	}
	r.reads++
	if answer < newest {
		r.stale++
	}
}

// age is how old an answer is whose newest row is that one: since when it lacks one that was acknowledged before it
// was asked for.
func (r *record) age(newest int64, asked time.Time) time.Duration {
	lacks, _ := slices.BinarySearch(r.acknowledged, newest+1)
	if lacks == len(r.at) {
		return 0
	}
	return max(asked.Sub(r.at[lacks]), 0)
}

// steady says that writes have been acknowledged for a while without an error before.
func (r *record) steady(now time.Time, first time.Time, long time.Duration) bool {
	return !first.IsZero() && now.Sub(first) >= long && now.Sub(r.failed) >= long && r.writes(now)
}

// fresh is how old the last acknowledged write of a client that writes may be.
const fresh = time.Second

// writes says that a write was acknowledged a moment ago.
func (r *record) writes(now time.Time) bool { return !r.last.IsZero() && now.Sub(r.last) < fresh }

// begin has the outage and the errors count from now on. The time since the last acknowledged write counts.
func (r *record) begin(now time.Time) { r.since = now }

// silence is for how long no write has been acknowledged.
func (r *record) silence(now time.Time) time.Duration { return now.Sub(r.last) }

// end is the longest outage with the one that has not ended.
func (r *record) end(now time.Time) time.Duration { return max(r.outage, r.silence(now)) }

// lost are how many acknowledged writes are not among those that are there.
func (r *record) lost(there []int64) (lost int64) {
	found := make(map[int64]bool, len(there))
	for _, n := range there {
		found[n] = true
	}
	for _, n := range r.acknowledged {
		if !found[n] {
			lost++
		}
	}
	return lost
}
