package ha

import "testing"

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

// Where a WAL file begins, by its name: never behind the end of what its name says.
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
	})
}
