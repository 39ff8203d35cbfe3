package wal

import (
	"encoding/binary"
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

func TestThePageThatOverwritesARecord(t *testing.T) {
	p := Pages{Page: 128, Segment: 1024}
	for name, c := range map[string]struct {
		magic, info uint16
		end, want   LSN
	}{
		"what PostgreSQL 15 to 18 sets":         {0xD110, 0x8, 1024, 512},
		"on a page that is the record's last":   {0xD110, 0x8, 513, 512},
		"on a page that the record has no more": {0xD110, 0x8, 512, 0},
		"what PostgreSQL 19 sets":               {magic19, 0x4, 1024, 512},
		"what that bit means before":            {0xD118, 0x4, 1024, 0},
		"a page that goes on":                   {0xD110, pageContinues, 1024, 0},
		"a page of zeros":                       {0, 0, 1024, 0},
	} {
		bytes := make([]byte, 1024)
		binary.LittleEndian.PutUint16(bytes[384:], 0xD110)
		binary.LittleEndian.PutUint16(bytes[512:], c.magic)
		binary.LittleEndian.PutUint16(bytes[514:], c.info)
		at, err := p.Overwritten(300, c.end, func(page LSN) ([]byte, error) { return bytes[page:], nil })
		if at != c.want || err != nil {
			t.Errorf("%s: %s, not %s: %v", name, at, c.want, err)
		}
	}
}
