package space

// segment is what PostgreSQL needs to go on writing WAL: one file.
const segment = 16 * mib

// SparingWAL is how much WAL there may be, in bytes, while a primary takes no writes: it goes on to write some, for
// reads set hint bits, and goes over its max_wal_size while a checkpoint is under way.
const SparingWAL = 2 * SparingMaxWAL

// SparingMaxWAL is max_wal_size then, in bytes: the least that PostgreSQL takes.
const SparingMaxWAL = 2 * segment

// Bounds are what must be free on a volume of a size, in bytes.
type Bounds struct {
	// Closes is how much must be free for a primary to go on taking writes, Opens how much for it to take them again.
	// Some of what WAL has counts as free: see TakeWrites.
	Closes, Opens int64
	// Short is how much is to be free: with less, volumes grow that may (Volume.Short).
	Short int64
	// Spare is what is left besides WAL when it has just stopped, UsualWAL what WAL needs while it takes writes.
	Spare, UsualWAL int64
	// Reserve is how much is kept in a file, to be given back when less than Least is free.
	Reserve, Least int64
}

// BoundsOf are those of a volume of a size. It must be possible to go on with what is left, so that is a 32nd, at least
// three files of WAL and at most a GiB, and the WAL that there may be. To take writes again, there must be room for the
// WAL that they make, which is a tenth of the volume and at most 8 GiB: else the primary would soon stop again. More
// must be free than when it stopped: where the volume fills fast, that is earlier, by what is spared at most. The
// reserve is a 16th, at least one file of WAL and at most four. A volume is short with less than a fifth, and a small
// one before writes are refused.
func BoundsOf(size int64) Bounds { return boundsOf(size, size/10) }

// BoundsOfWAL are those of a volume that only WAL is on, of which it takes a fifth.
func BoundsOfWAL(size int64) Bounds { return boundsOf(size, size/5) }

func boundsOf(size, usual int64) Bounds {
	spare := min(max(size/32, 3*segment), gib)
	usual = min(usual, 8*gib)
	closes := spare + SparingWAL
	opens := max(2*spare+usual, closes+2*spare)
	return Bounds{
		Closes: closes, Opens: opens, Short: max(size/shortPart, opens), Spare: spare, UsualWAL: usual,
		Reserve: min(max(size/16, segment), 4*segment), Least: segment,
	}
}

// TakeWrites says whether a primary takes writes. What WAL has counts as free as far as WAL will need it: what it has
// besides may be kept for somebody. perSecond is by how much the volume has filled in the last second: as much again
// may be written before the primary has stopped, so it stops earlier, but not by more than what is spared.
func (b Bounds) TakeWrites(free, wal, perSecond int64, takes bool) bool {
	if !takes {
		return b.opens(free, wal) >= 0
	}
	return free+min(wal, SparingWAL) >= b.Closes+min(max(perSecond, 0), b.Spare)
}

// opens is how much more is free than must be for a primary to take writes again.
func (b Bounds) opens(free, wal int64) int64 {
	return free + min(wal, max(b.UsualWAL, SparingWAL)) - b.Opens
}

// IsShort says that less is free than is to be. One that was short has an eighth more when it is not any more.
func (b Bounds) IsShort(free int64, was bool) bool {
	if was {
		return free < b.Short+b.Short/8
	}
	return free < b.Short
}

// EndReads says that those who read are ended too: what they write to the WAL may take what is left, faster than the
// standbys receive it.
func (b Bounds) EndReads(free int64) bool { return free < 2*b.Least }

// GiveReserve says that the reserve is to be given back.
func (b Bounds) GiveReserve(free int64) bool { return free < b.Least }

// TakeReserve says that there is room to have it again: with it, a primary still takes writes.
func (b Bounds) TakeReserve(free, wal int64) bool { return b.opens(free, wal) >= b.Reserve }

// DrillLeaves is how much a FaultDrill that fills the volume leaves free, in bytes: so little that a primary takes no
// writes, whatever its WAL has, and more than that below which those who read are ended.
func (b Bounds) DrillLeaves() int64 { return b.Spare / 8 * 7 }

// DrillMayFill says that a FaultDrill may fill the volume: once it does not any more, a primary takes writes again,
// though some were written meanwhile.
func (b Bounds) DrillMayFill(free, wal int64) bool { return b.opens(free, wal) >= b.Spare }
