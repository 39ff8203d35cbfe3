package wal

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

// written is WAL as a server writes it, in small pages and segments.
type written struct {
	pages Pages
	bytes []byte // from position 0 on
	// ends are where its records end: with all of its bytes, and as replay tells it.
	ends     []recordEnd
	last     LSN
	timeline uint32
}

type recordEnd struct{ raw, end LSN }

func (w *written) at() LSN { return LSN(len(w.bytes)) }

// page begins a page, on which so much of a record goes on.
func (w *written) page(remaining int, info uint16) {
	length, at := PageHeader, w.at()
	if uint64(at)%w.pages.Segment == 0 {
		length, info = SegmentHeader, info|2
	}
	if remaining > 0 {
		info |= pageContinues
	}
	head := make([]byte, length)
	binary.LittleEndian.PutUint16(head, 0xD110)
	binary.LittleEndian.PutUint16(head[2:], info)
	binary.LittleEndian.PutUint32(head[4:], w.timeline)
	binary.LittleEndian.PutUint64(head[8:], uint64(at))
	binary.LittleEndian.PutUint32(head[16:], uint32(remaining))
	w.bytes = append(w.bytes, head...)
}

// record writes one of so many bytes, or, to be cut off, only some of them.
func (w *written) record(length, some int, info byte, random *rand.Rand) {
	if uint64(w.at())%w.pages.Page == 0 {
		w.page(0, 0)
	}
	text := make([]byte, length)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	text[16], text[17] = info, 0
	w.put(text, some)
}

// put writes a record, or only some bytes of it. What of its header is the same in all is filled in.
func (w *written) put(text []byte, some int) {
	begin, length, switches := w.at(), len(text), text[16] == 0x40 && text[17] == 0
	binary.LittleEndian.PutUint32(text, uint32(length))
	binary.LittleEndian.PutUint64(text[8:], uint64(w.last))
	sum := crc32.Update(crc32.Checksum(text[recordHeader:], castagnoli), castagnoli, text[:20])
	binary.LittleEndian.PutUint32(text[20:], sum)
	for left := text[:some]; len(left) > 0; {
		if uint64(w.at())%w.pages.Page == 0 {
			w.page(length-some+len(left), 0)
		}
		n := min(len(left), int(w.pages.Page-uint64(w.at())%w.pages.Page))
		w.bytes, left = append(w.bytes, left[:n]...), left[n:]
	}
	if some < length {
		return
	}
	raw := w.at()
	w.bytes = append(w.bytes, make([]byte, -uint64(raw)%8)...)
	if switches {
		w.bytes = append(w.bytes, make([]byte, -uint64(w.at())%w.pages.Segment)...)
	}
	w.ends, w.last = append(w.ends, recordEnd{raw, w.at()}), begin
}

// end is where the last record ends of which all bytes are there.
func (w *written) end(flushed LSN) (end LSN) {
	for _, e := range w.ends {
		if e.raw <= flushed {
			end = e.end
		}
	}
	return end
}

// read reads it as it is when it has been flushed up to somewhere: what a file had before follows.
func (w *written) read(flushed LSN) func(LSN, uint64) ([]byte, error) {
	files := append(slices.Clone(w.bytes), make([]byte, -uint64(len(w.bytes))%w.pages.Segment)...)
	for i := int(flushed); i < len(files); i++ {
		files[i] ^= 0xFF
	}
	return func(at LSN, length uint64) ([]byte, error) {
		return files[min(at, LSN(len(files))):min(at.Add(length), LSN(len(files)))], nil
	}
}

// some is WAL of all kinds: short and long records, ends of segments, and one that was overwritten.
func some(random *rand.Rand) *written {
	w := &written{pages: Pages{Page: 128, Segment: 1024}}
	for len(w.bytes) < 6*1024 {
		switch random.IntN(12) {
		case 0:
			w.record(recordHeader, recordHeader, 0x40, random)
		case 1:
			length := 200 + random.IntN(700) // it goes over pages
			w.record(length, length, 0, random)
		case 2:
			w.overwritten(random)
		default:
			length := recordHeader + random.IntN(120)
			w.record(length, length, 0, random)
		}
	}
	return w
}

// overwritten begins a record of which nothing came after a page: another follows there.
func (w *written) overwritten(random *rand.Rand) {
	if uint64(w.at())%w.pages.Page == 0 {
		w.page(0, 0)
	}
	room := int(w.pages.Page - uint64(w.at())%w.pages.Page)
	w.record(room+300, room, 0, random)
	w.page(0, pageOverwrites)
	w.record(recordHeader+8, recordHeader+8, 0xD0, random)
}

func TestTheEndOfWALIsFoundWithoutReplay(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a test must be repeatable
		w := some(random)
		for flushed := w.ends[0].end; flushed <= w.at(); flushed++ {
			want := w.end(flushed)
			for _, low := range []LSN{w.ends[0].end, w.ends[random.IntN(len(w.ends))].end, want} {
				if low > want {
					continue
				}
				r := Records{Pages: w.pages, Read: w.read(flushed)}
				near, err := r.Near(low, flushed)
				if err != nil || near < low || near > max(want, low) {
					t.Fatalf("seed %d: near %s and after %s a record ends at %s, %v; the last at %s", seed, flushed,
						low, near, err, want)
				}
				if got, whole, err := r.After(near, MaxLSN, 1<<40); got != want || !whole || err != nil {
					t.Fatalf("seed %d, flushed up to %s: the last whole record after %s, %s ends at %s, %t, %v, not %s",
						seed, flushed, low, near, got, whole, err, want)
				}
			}
		}
	}
}

// Near does not go far back: of a long way it reads a few pages.
func TestTheEndIsLookedForAtTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- a test must be repeatable
	w := &written{pages: Pages{Page: 128, Segment: 1024}}
	for len(w.bytes) < 200*1024 {
		w.record(64, 64, 0, random)
	}
	w.record(60*1024, 60*1024, 0, random)
	for _, flushed := range []LSN{150 * 1024, 240 * 1024, w.at()} {
		reads := 0
		read := w.read(flushed)
		r := Records{Pages: w.pages, Read: func(at LSN, length uint64) ([]byte, error) {
			reads++
			return read(at, min(length, w.pages.Page))
		}}
		near, err := r.Near(w.ends[0].end, flushed)
		if reads > 20 || err != nil || w.end(flushed).Since(near) > 256 {
			t.Errorf("%d reads find %s (%v) for %s", reads, near, err, w.end(flushed))
		}
	}
}

func TestOnlyWhatIsWholeCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1)) // #nosec G404 -- a test must be repeatable
	w := &written{pages: Pages{Page: 128, Segment: 1024}}
	for range 40 {
		w.record(56, 56, 0, random)
	}
	end, whole, err := (&Records{Pages: w.pages, Read: w.read(w.at())}).After(w.ends[3].end, w.ends[20].end+4, 1<<40)
	if end != w.ends[20].end || !whole || err != nil {
		t.Errorf("up to a limit it ends at %s, %t, %v", end, whole, err)
	}
	end, whole, err = (&Records{Pages: w.pages, Read: w.read(w.at())}).After(w.ends[3].end, MaxLSN, 100)
	if end <= w.ends[3].end || end > w.ends[8].end || whole || err != nil {
		t.Errorf("after some bytes it has come to %s, %t, %v", end, whole, err)
	}
	w.bytes[w.ends[10].raw-1]++
	end, _, err = (&Records{Pages: w.pages, Read: w.read(w.at())}).After(w.ends[3].end, MaxLSN, 1<<40)
	if end != w.ends[9].end || err != nil {
		t.Errorf("one that has another byte counts: it ends at %s, %v, not %s", end, err, w.ends[9].end)
	}
}

// What a file had before may be a whole record, of another place: it says that it follows another one. So it is no
// record that counts, also where it comes first.
func TestARecordOfAnotherPlaceDoesNotFollow(t *testing.T) {
	tried := 0
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3)) // #nosec G404 -- a test must be repeatable
		w, stray := some(random), &written{pages: Pages{Page: 128, Segment: 1024}, last: 8}
		stray.record(recordHeader, recordHeader, 0, random)
		for _, e := range w.ends {
			room := w.pages.Page - uint64(e.end)%w.pages.Page
			if room < recordHeader || room == w.pages.Page {
				continue
			}
			files := append(slices.Clone(w.bytes[:e.end]), stray.bytes[SegmentHeader:]...)
			r := Records{Pages: w.pages, Read: func(at LSN, length uint64) ([]byte, error) {
				return files[min(at, LSN(len(files))):min(at.Add(length), LSN(len(files)))], nil
			}}
			files = append(files, make([]byte, -uint64(len(files))%w.pages.Segment)...)
			if end, whole, err := r.After(e.end, MaxLSN, 1<<40); end != e.end || !whole || err != nil {
				t.Errorf("seed %d: after %s comes a record that ends at %s: %t, %v", seed, e.end, end, whole, err)
			}
			tried++
		}
	}
	if tried < 150 {
		t.Errorf("%d records were tried", tried)
	}
}
