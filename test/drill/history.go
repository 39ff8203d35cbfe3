package main

import (
	"slices"
	"sync"
	"time"
)

// Path is the way that a client takes to the database.
type Path string

// The ways. A local client sits in the network of an instance's own node and knows
// only that instance: it sees what an instance does that nobody else reaches.
const (
	PathService Path = "service"
	PathMulti   Path = "multi-host"
	PathLocal   Path = "local"
	PathPooler  Path = "pooler"
	PathLabel   Path = "label"
)

// allPaths are all of them.
var allPaths = []Path{PathService, PathMulti, PathLocal, PathPooler, PathLabel}

// Outcome is what a client knows of its write.
type Outcome string

// The outcomes. Unknown is everything between: a lost connection, a timeout, a
// warning with the commit.
const (
	Acked   Outcome = "acked"
	Failed  Outcome = "failed"
	Unknown Outcome = "unknown"
)

// Leader is a primary: an instance on a timeline. Each promotion begins a new
// timeline; a primary that is only restarted stays on its own.
type Leader struct {
	Instance string `json:"instance"`
	Timeline string `json:"timeline"`
}

// write is one attempt to write a row with an id of its own. Times are since the
// beginning of the history, on the monotonic clock.
type write struct {
	id         int64
	path       Path
	start, end time.Duration
	outcome    Outcome
	leader     Leader // only of an acknowledged one: it says itself where it went
	problem    string
}

// sight is one answer of an instance to the probe.
type sight struct {
	instance   string
	start, end time.Duration
	primary    bool // it is not in recovery
	leader     Leader
}

// route is what the read-write Service led to from then on.
type route struct {
	at        time.Duration
	instances []string
}

// history is all that was seen from outside in one run.
type history struct {
	zero   time.Time
	mutex  sync.Mutex
	nextID int64
	writes []write
	sights []sight
	routes []route
	last   map[string]sight
}

func newHistory() *history { return &history{zero: time.Now(), last: map[string]sight{}} }

// now is the time since the beginning.
func (h *history) now() time.Duration { return time.Since(h.zero) }

// id is one that nobody had before.
func (h *history) id() int64 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.nextID++
	return h.nextID
}

func (h *history) noteWrite(w write) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes = append(h.writes, w)
}

func (h *history) noteSight(s sight) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.sights = append(h.sights, s)
	h.last[s.instance] = s
}

func (h *history) noteRoute(r route) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.routes = append(h.routes, r)
}

// acks are the acknowledged writes of the paths, by the time of the acknowledgement.
func (h *history) acks(paths ...Path) []write {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var acks []write
	for _, w := range h.writes {
		if w.outcome == Acked && slices.Contains(paths, w.path) {
			acks = append(acks, w)
		}
	}
	slices.SortFunc(acks, func(a, b write) int { return int(a.end - b.end) })
	return acks
}

// latest is the last answer of each instance, if it is not older than that.
func (h *history) latest(age time.Duration) map[string]sight {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	now, last := h.now(), map[string]sight{}
	for instance, s := range h.last {
		if now-s.end <= age {
			last[instance] = s
		}
	}
	return last
}

// leaders are all that were seen so far.
func (h *history) leaders() map[Leader]bool {
	acks := h.acks(allPaths...)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return leaders(h.sights, acks)
}
