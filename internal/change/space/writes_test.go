package space

import "testing"

func TestBoundsOf(t *testing.T) {
	for _, c := range []struct{ size, closes, opens, reserve int64 }{
		{200 * mib, 112 * mib, 208 * mib, 16 * mib},
		{512 * mib, 112 * mib, 208 * mib, 32 * mib},
		{10 * gib, 384 * mib, 640*mib + gib, 64 * mib},
		{1000 * gib, gib + 64*mib, 10 * gib, 64 * mib},
	} {
		b := BoundsOf(c.size)
		if b.Closes != c.closes || b.Opens != c.opens || b.Reserve != c.reserve || b.Least != 16*mib {
			t.Errorf("the bounds of %d MiB are %+v", c.size/mib, b)
		}
	}
}

// Of a volume that only WAL is on it may take more, so more must be free when writes are taken again.
func TestBoundsOfWAL(t *testing.T) {
	for _, size := range []int64{512 * mib, gib, 10 * gib, 1000 * gib} {
		data, wal := BoundsOf(size), BoundsOfWAL(size)
		if wal.Closes != data.Closes || wal.Reserve != data.Reserve || wal.UsualWAL < data.UsualWAL ||
			wal.UsualWAL > 8*gib || wal.Opens < data.Opens || wal.Short < wal.Opens {
			t.Errorf("the bounds of %d MiB are %+v, and of data %+v", size/mib, wal, data)
		}
	}
	if got := BoundsOfWAL(10 * gib).Opens; got != 640*mib+2*gib {
		t.Errorf("of 10 GiB, %d MiB open it", got/mib)
	}
	v := Volume{Known: true, Size: 10 * gib, Used: 10*gib - 2200*mib}
	if v.Short() {
		t.Error("more than a fifth is free, and a data volume is short")
	}
	if v.WAL = true; !v.Short() {
		t.Error("a WAL volume is not, though it would not open")
	}
}

func TestTakeWrites(t *testing.T) {
	b := BoundsOf(10 * gib)
	for free, want := range map[int64][2]bool{
		2*gib - 1: {true, true}, 2 * gib: {false, true}, 3 * gib: {false, false},
	} {
		if got := [2]bool{b.IsShort(free, false), b.IsShort(free, true)}; got != want {
			t.Errorf("with %d MiB free it is short %v", free/mib, got)
		}
	}
	for name, c := range map[string]struct {
		free, wal, perSecond int64
		takes, want          bool
	}{
		"enough is free":                        {400 * mib, 0, 0, true, true},
		"too little is free":                    {383 * mib, 0, 0, true, false},
		"what WAL needs then, it has":           {320 * mib, 64 * mib, 0, true, true},
		"WAL has much, which may be kept":       {319 * mib, 2 * gib, 0, true, false},
		"it will be before the primary stops":   {450 * mib, 0, 100 * mib, true, false},
		"it shrinks":                            {390 * mib, 0, -100 * mib, true, true},
		"a fast load on a volume that is empty": {5 * gib, 0, 3 * gib, true, true},
		"it has stopped, and little was freed":  {gib, 0, 0, false, false},
		"it has stopped, and enough was freed":  {gib + 640*mib, 0, 0, false, true},
		"a checkpoint has freed what WAL had":   {gib + 319*mib, 64 * mib, 0, false, false},
		"WAL is kept for somebody":              {639 * mib, 5 * gib, 0, false, false},
		"with its WAL there is enough":          {640 * mib, gib, 0, false, true},
	} {
		if got := b.TakeWrites(c.free, c.wal, c.perSecond, c.takes); got != c.want {
			t.Errorf("%s: it takes writes: %v", name, got)
		}
	}
}

// What was given back is not taken again at once, and what is taken does not close.
func TestReserve(t *testing.T) {
	for _, size := range []int64{100 * mib, 512 * mib, 10 * gib, 1000 * gib} {
		b := BoundsOf(size)
		if !b.GiveReserve(16*mib-1) || b.GiveReserve(16*mib) {
			t.Errorf("of %d MiB, the reserve is not given back below one file of WAL", size/mib)
		}
		if b.TakeReserve(b.Least+b.Reserve, 0) || !b.TakeWrites(b.Opens, 0, 0, false) || b.Opens < b.Closes+2*b.Spare {
			t.Errorf("of %d MiB, it does not come to rest: %+v", size/mib, b)
		}
	}
}

// A drill fills a volume until a primary takes no writes, and no further than that. Where its file was enough, a
// primary takes writes again when that is gone, as it was before.
func TestADrillThatFills(t *testing.T) {
	for _, size := range []int64{100 * mib, 512 * mib, 10 * gib, 1000 * gib} {
		b := BoundsOf(size)
		left := b.DrillLeaves()
		for _, wal := range []int64{0, segment, SparingWAL, 8 * gib} {
			if b.TakeWrites(left, wal, 0, true) {
				t.Errorf("of %d MiB, %d are left, and with %d of WAL it takes writes", size/mib, left/mib, wal/mib)
			}
		}
		if b.EndReads(left) || b.GiveReserve(left) {
			t.Errorf("of %d MiB, %d are left, and those who read are ended", size/mib, left/mib)
		}
		if free := b.Opens + b.Spare; !b.DrillMayFill(free, 0) || b.DrillMayFill(free-1, 0) ||
			!b.TakeWrites(free, 0, 0, false) {
			t.Errorf("of %d MiB, it is filled with the wrong room", size/mib)
		}
	}
}
