package wal

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A position in WAL that is understood is the one that is written again.
func FuzzLSN(f *testing.F) {
	for _, text := range []string{"0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF", "1/100000000", "/", "-1/0", "0x1/0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lsn, err := ParseLSN(text)
		if err != nil {
			return
		}
		if again, err := ParseLSN(lsn.String()); err != nil || again != lsn {
			t.Errorf("%q is %s, and that is %s, %v", text, lsn, again, err)
		}
	})
}

// Where a WAL file begins, by its name: at a multiple of its size, and never behind its end.
func FuzzSegmentStart(f *testing.F) {
	f.Add("000000010000001600000003", uint64(16<<20))
	f.Add("0000000100000000FFFFFFFF", uint64(16<<20))
	f.Add("00000001FFFFFFFFFFFFFFFF", uint64(1<<30))
	f.Fuzz(func(t *testing.T, name string, size uint64) {
		const mega = 1 << 20
		size = mega << (size % 11) // the sizes that there are: 1 MiB to 1 GiB
		start, err := SegmentStart(name, size)
		if err == nil && uint64(start)%size != 0 {
			t.Errorf("%s begins at %s, within a segment of %d bytes", name, start, size)
		}
		s, ok := ParseSegment(name, size)
		if ok && (s.End() <= s.Start() || SegmentAt(s.Timeline, s.Start(), size) != s) {
			t.Errorf("%s is from %s to %s", name, s.Start(), s.End())
		}
	})
}

// A name that is understood is the name that would be written for what was understood.
func FuzzFileName(f *testing.F) {
	for _, name := range []string{"000000010000000000000004", "0000000A.history", "FFFFFFFFFFFFFFFF000000FF",
		"0000000100000000000000FF.partial", "00000001.partial"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, isSegment := ParseSegment(name, SegmentSize)
		if isSegment && s.String() != name {
			t.Errorf("%q is read as %q", name, s)
		}
		timeline, isHistory := ParseHistoryFile(name)
		if isHistory && timeline.HistoryFile() != name {
			t.Errorf("%q is read as %q", name, timeline.HistoryFile())
		}
		if of, ok := TimelineOf(name); isSegment && (!ok || of != s.Timeline) || isHistory && (!ok || of != timeline) {
			t.Errorf("%q is of timeline %d, %v", name, of, ok)
		}
	})
}

// A history file comes from another server or from an archive: what is understood of it is the same when it is written
// and read again, and where a timeline begins is one of its lines.
func FuzzHistoryFile(f *testing.F) {
	for _, text := range []string{"1\t0/5000000\tno recovery target specified\n", "1 0/1 x\n2 16/B374D848 x\n",
		"# x\n\n", "x", "4294967296\t0/1\tx", "1\t0/100000000\tx"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHistory(9, text)
		if err != nil {
			return
		}
		var written strings.Builder
		for _, b := range h.Before {
			fmt.Fprintf(&written, "%d\t%s\tsome reason\n", b.Timeline, b.At)
		}
		if again, err := ParseHistory(9, written.String()); err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("%v becomes %v, %v", h, again, err)
		}
		if at, ok := h.Switch(h.Begin()); len(h.Before) > 0 && (!ok || at != h.Begin()) {
			t.Errorf("it begins at %s, and goes on to it at %s, %v: %v", h.Begin(), at, ok, h)
		}
	})
}
