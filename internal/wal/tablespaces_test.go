package wal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// tablespace writes the record that makes one, with what may be before its main data.
func (w *written) tablespace(folder string, random *rand.Rand) Tablespace {
	if uint64(w.at())%w.pages.Page == 0 {
		w.page(0, 0)
	}
	made := Tablespace{w.at(), folder}
	data := append([]byte{1, 2, 3, 4}, append([]byte(folder), 0)...)
	header := [recordHeader]byte{16: 0x03, 17: tablespaceManager} // the lower bits are no part of what it does
	text := slices.Clone(header[:])
	if random.IntN(2) == 0 {
		text = append(text, 253, 7, 7)
	}
	if random.IntN(2) == 0 {
		text = append(text, 252, 5, 5, 5, 5)
	}
	if len(data) < 256 {
		text = append(text, 255, byte(len(data)))
	} else {
		text = append(text, 254, byte(len(data)), byte(len(data)>>8), 0, 0)
	}
	text = append(text, data...)
	w.put(text, len(text))
	return made
}

// Wherever the record lies, over pages and segments, behind what was cut off and among long records, it is found once.
func TestTheTablespacesThatWALMakesAreFound(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3)) // #nosec G404 -- a test must be repeatable
		w := &written{pages: Pages{Page: 128, Segment: 1024}}
		var want []Tablespace
		for len(w.bytes) < 20*1024 {
			switch n := random.IntN(10); n {
			case 0:
				folder := fmt.Sprintf("/volume/%0*d", 1+random.IntN(400), len(want))
				want = append(want, w.tablespace(folder, random))
			case 1:
				w.record(3000, 3000, 0, random)
			case 2:
				w.overwritten(random)
			case 3:
				w.record(recordHeader, recordHeader, 0x40, random)
			default:
				length := recordHeader + random.IntN(120)
				w.record(length, length, 0, random)
			}
		}
		w.bytes = append(w.bytes, make([]byte, -uint64(len(w.bytes))%w.pages.Segment)...)
		first := LSN(random.IntN(4) * 1024) // records that begin before it are not found
		want = slices.DeleteFunc(want, func(s Tablespace) bool { return s.Begin < first })
		found := Tablespaces{Pages: w.pages}
		var got []Tablespace
		for at := first; at < w.at(); at += LSN(w.pages.Segment) {
			got = append(got, found.Segment(at, w.bytes[at:at+LSN(w.pages.Segment)])...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: found\n%v, want\n%v", seed, got, want)
		}
	}
}

// What a file had before is of another place.
func TestATablespaceOfAnotherPlaceIsNotFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3)) // #nosec G404 -- a test must be repeatable
	w := &written{pages: Pages{Page: 128, Segment: 1024}}
	w.tablespace("/volume/space", random)
	w.bytes = append(w.bytes, make([]byte, -uint64(len(w.bytes))%w.pages.Segment)...)
	found := Tablespaces{Pages: w.pages}
	if got := found.Segment(1024, w.bytes[:1024]); got != nil {
		t.Errorf("found %v", got)
	}
	if got := found.Segment(0, w.bytes[:1024]); len(got) != 1 {
		t.Errorf("at its place, found %v", got)
	}
}
