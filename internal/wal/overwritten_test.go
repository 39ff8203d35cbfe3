package wal

import (
	"math/rand/v2"
	"testing"
)

// A record that goes on over pages may be cut off after the first of them, too: what it would have ended at is no end.
func TestWhatWasOverwrittenAfterSomePagesEndsNowhere(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2)) // #nosec G404 -- a test must be repeatable
		w := &written{pages: Pages{Page: 128, Segment: 1024}}
		w.record(56, 56, 0, random)
		w.record(56, 56, 0, random)
		first := w.ends[0].end
		left := 1 + random.IntN(60) // that much is to come on the page that is overwritten
		room := int(w.pages.Page-uint64(w.at())%w.pages.Page) % int(w.pages.Page)
		some := room + 3*(int(w.pages.Page)-PageHeader)
		w.record(some+left, some, 0, random)
		w.page(0, pageOverwrites)
		w.record(recordHeader+8, recordHeader+8, 0xD0, random)
		for range 3 {
			w.record(40, 40, 0, random)
		}
		w.record(900, 900, 0, random)
		for flushed := first; flushed <= w.at(); flushed++ {
			r := Records{Pages: w.pages, Read: w.read(flushed)}
			near, err := r.Near(first, flushed)
			if err != nil {
				t.Fatal(err)
			}
			got, whole, err := r.After(near, MaxLSN, 1<<40)
			if want := w.end(flushed); got != want || !whole || err != nil {
				t.Errorf("seed %d, flushed %d: near %d, end %d, want %d", seed, flushed, near, got, want)
				break
			}
		}
	}
}
