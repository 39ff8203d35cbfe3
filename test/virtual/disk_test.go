package virtual

import (
	"fmt"
	"maps"
	"slices"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// record is one of the WAL. The id tells it from all others that ever were.
type record struct {
	id       uint64
	timeline wal.Timeline
	kind     string
}

// Where the WAL begins, how long a record and a file of it are, in bytes.
const (
	walBegin    = 0x1000
	recordSize  = 32
	segmentSize = 0x1000
)

// lsn is where WAL of so many records ends.
func lsn(records int) wal.LSN { return wal.LSN(walBegin + records*recordSize) }

// begin is where a timeline begins, in records.
type begin struct {
	timeline wal.Timeline
	at       int
}

// disk is what a PostgreSQL server has on its volume. Who uses it has the world's mutex.
type disk struct {
	data   bool
	system string
	wal    []record
	// oldest is the first record of the WAL that is still there.
	oldest int
	// history are the timelines that lead to the present one, known the histories that lie in pg_wal.
	history []begin
	known   map[wal.Timeline][]begin
	state   string
	// checkpoint is the record of the latest checkpoint, settled its timeline.
	checkpoint int
	settled    wal.Timeline
	standby    bool
	settings   postgres.Settings
	incomplete bool
	forked     bool
}

// copied is the same disk, of which nothing is shared.
func (d *disk) copied() *disk {
	next := *d
	next.wal, next.history, next.known = slices.Clone(d.wal), slices.Clone(d.history), maps.Clone(d.known)
	return &next
}

// initialise makes a new database system.
func (d *disk) initialise(system string, id func() uint64) {
	*d = disk{
		data: true, system: system, history: []begin{{timeline: 1}},
		known: map[wal.Timeline][]begin{}, settled: 1, state: "shut down",
	}
	for range 3 {
		d.write(id(), "initdb")
	}
	d.checkpoint = 2
}

func (d *disk) timeline() wal.Timeline { return d.history[len(d.history)-1].timeline }

// write writes a record on the present timeline, and says where the WAL ends then.
func (d *disk) write(id uint64, kind string) int {
	d.wal = append(d.wal, record{id, d.timeline(), kind})
	return len(d.wal)
}

// has says whether the WAL has a record in a place.
func (d *disk) has(index int, id uint64) bool { return index < len(d.wal) && d.wal[index].id == id }

// branch begins a new timeline at the end of the WAL, as a promotion does.
func (d *disk) branch() {
	highest := d.timeline()
	for timeline := range d.known {
		highest = max(highest, timeline)
	}
	d.history = append(slices.Clone(d.history), begin{highest + 1, len(d.wal)})
	d.known[highest+1] = d.history
}

// timelineAt is the timeline of a history that a place in the WAL is on (tliOfPointInHistory in
// PostgreSQL's timeline.c).
func timelineAt(history []begin, at int) wal.Timeline {
	for _, b := range slices.Backward(history) {
		if b.at <= at {
			return b.timeline
		}
	}
	return history[0].timeline
}

// leaves is where a history leaves a timeline; false where it never was on it. On the last one it is at the end.
func leaves(history []begin, timeline wal.Timeline, end int) (int, bool) {
	i := slices.IndexFunc(history, func(b begin) bool { return b.timeline == timeline })
	if i < 0 {
		return 0, false
	}
	if i+1 < len(history) {
		return history[i+1].at, true
	}
	return end, true
}

// continues says whether the WAL of a standby can be continued by this server's, by all that PostgreSQL looks at.
func (d *disk) continues(history []begin, records int) error {
	timeline := timelineAt(history, records)
	end, ok := leaves(d.history, timeline, len(d.wal))
	switch {
	case !ok || records > end:
		return fmt.Errorf("requested starting point %s on timeline %d is not in this server's history",
			lsn(records), timeline)
	case records < d.oldest:
		return fmt.Errorf("requested WAL segment at %s has already been removed", lsn(records))
	}
	return nil
}

// parting is where two histories part, in records, for a rewind (findCommonAncestorTimeline in pg_rewind.c).
func parting(a, b []begin, aEnd, bEnd int) (int, bool) {
	common := 0
	for common < min(len(a), len(b)) && a[common] == b[common] {
		common++
	}
	if common == 0 {
		return 0, false
	}
	end := func(h []begin, last int) int {
		if common < len(h) {
			return h[common].at
		}
		return last
	}
	return min(end(a, aEnd), end(b, bEnd)), true
}

// same says whether the WAL of one is the beginning of the other's.
func same(a, b []record) bool {
	for i := range min(len(a), len(b)) {
		if a[i].id != b[i].id {
			return false
		}
	}
	return true
}
