package wal

import (
	"math/rand/v2"
	"testing"
)

// A standby that has received a segment of a new timeline may still have the next one of the timeline before, which was
// not continued: that does not follow, although it begins with a whole record.
func TestNoSegmentOfAnEarlierTimelineFollows(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1)) // #nosec G404 -- a test must be repeatable
	left := &written{pages: Pages{Page: 128, Segment: 1024}, timeline: 1}
	for left.at() < 1024+300 {
		left.record(56, 56, 0, random)
	}
	w := &written{pages: left.pages, timeline: 2, last: left.last}
	w.bytes = append(w.bytes, left.bytes...)
	for _, one := range []*written{left, w} {
		for range 1 + one.timeline {
			one.record(100, 100, 0, random)
		}
		one.record(recordHeader, recordHeader, 0x40, random)
		for one.timeline == 1 && one.at() < 3000 {
			one.record(56, 56, 0, random)
		}
	}
	const next = 2048
	if w.at() != next || left.ends[len(left.ends)-1].end <= next {
		t.Fatalf("one ends at %s, the other at %s", w.at(), left.at())
	}
	of1, of2 := left.read(left.at()), w.read(w.at())
	for _, from := range []LSN{next, w.ends[0].end} {
		r := Records{Pages: w.pages, Read: func(at LSN, length uint64) ([]byte, error) {
			if at >= next {
				return of1(at, length)
			}
			return of2(at, length)
		}}
		if end, whole, err := r.After(from, MaxLSN, 1<<40); end != next || !whole || err != nil {
			t.Errorf("after %s it ends at %s, %t, %v", from, end, whole, err)
		}
		r.Read = of1
		if end, _, err := r.After(next, MaxLSN, 1<<40); end != left.end(left.at()) || err != nil {
			t.Errorf("where all is of one timeline it ends at %s, %v", end, err)
		}
	}
}
