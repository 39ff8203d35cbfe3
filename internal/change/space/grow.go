package space

import (
	"fmt"
	"time"
)

// The answers to whether volumes grow by themselves, in the order in which they are looked for.
const (
	Off          = "Off"          // they may not
	Fixed        = "Fixed"        // their class can't
	Enough       = "Enough"       // none is short
	Useless      = "Useless"      // the file system of the one that is short is larger than the volume
	Pending      = "Pending"      // the storage has not finished what was asked for
	LimitReached = "LimitReached" // they have the size that they may have
	Grows        = "Grows"        // they are enlarged
)

const (
	// shortPart is the part of a volume that is to be free.
	shortPart = 5
	// shortWithin is how soon a volume that is half full may be full by the rate.
	shortWithin = 2 * Day
	// growBy is by what part volumes grow, growMore where the last growth was within growOften.
	growBy, growMore = 4, 2
	growOften        = 6 * time.Hour
	// growFor is for how long they are to have room by the rate, with a fifth still free.
	growFor = 7
	// settles is how long a file system may take to get the size that its volume has.
	settles = 10 * time.Minute

	mib = int64(1) << 20
	gib = int64(1) << 30
)

// Volume is that of an instance: what it is, and how full its file system. Sizes are in bytes.
type Volume struct {
	Name string
	// WAL says that only WAL is on it.
	WAL bool
	// Asked is the size that was asked for, Has the one that the storage has given it, 0 for not known.
	Asked, Has int64
	// Known says that what follows is known.
	Known bool
	// Size is that of the file system.
	Size, Used int64
	// PerDay is by how much it fills a day, where RateKnown. Lately is by how much it has in the last minute.
	PerDay, Lately int64
	RateKnown      bool
}

// Bounds are what must be free on it.
func (v Volume) Bounds() Bounds {
	if v.WAL {
		return BoundsOfWAL(v.Size)
	}
	return BoundsOf(v.Size)
}

// Free is how much of it is not used.
func (v Volume) Free() int64 { return max(v.Size-v.Used, 0) }

// Short says that a volume needs to be larger. One of which too little is known does not.
func (v Volume) Short() bool {
	if !v.Known || v.Size <= 0 {
		return false
	}
	if v.Bounds().IsShort(v.Free(), false) {
		return true
	}
	in, never := FullIn(v.Free(), v.PerDay)
	return v.RateKnown && v.halfUsed() && !never && in < shortWithin
}

func (v Volume) halfUsed() bool { return v.Free() < v.Size/2 }

// ShortIn is how soon it is short if it goes on as in the last minute.
func (v Volume) ShortIn() (in time.Duration, never bool) {
	if !v.Known || v.Lately <= 0 {
		return 0, true
	}
	return FullIn(v.Free()-v.Bounds().Short, v.Lately*int64(Day/time.Minute))
}

// Growth is what is known about whether the volumes of a SampleDB grow.
type Growth struct {
	// Limit is up to what size they may grow, 0 for not by themselves; Size the one in force.
	Limit, Size int64
	Volumes     []Volume
	// Fixed says why they can't grow, "" where they can.
	Fixed string
	// GrownAt is when they last were enlarged, zero for never; Now is the present.
	GrownAt, Now time.Time
}

// Decision is whether the volumes grow, and why.
type Decision struct {
	// Answer is one of those above.
	Answer string
	// To is the size that they get, where they grow.
	To int64
	// Message is for people.
	Message string
}

// Decide says whether the volumes grow now. All of them get the same size.
func Decide(g Growth) Decision {
	if g.Limit <= 0 {
		return Decision{Answer: Off}
	}
	if g.Fixed != "" {
		return Decision{Answer: Fixed, Message: g.Fixed}
	}
	short := g.short()
	if short == nil {
		return Decision{Answer: Enough}
	}
	if short.Has > 0 && short.Size > short.Has+short.Has/10 {
		return Decision{Answer: Useless, Message: fmt.Sprintf(
			"the file system of volume %s is larger than the volume: to enlarge that gives no room", short.Name)}
	}
	if name := g.pending(); name != "" {
		return Decision{Answer: Pending, Message: fmt.Sprintf("volume %s is still being enlarged", name)}
	}
	if g.Size >= g.Limit {
		return Decision{Answer: LimitReached, Message: fmt.Sprintf(
			"volume %s gets short, and has grown as far as storage.grow.limit lets it: raise that, or delete what "+
				"is not needed", short.Name)}
	}
	return Decision{Answer: Grows, To: g.next(), Message: short.Name}
}

// short is the volume that has the least part free of those that are short, nil where none is.
func (g Growth) short() *Volume {
	var found *Volume
	for i, v := range g.Volumes {
		if v.Short() && (found == nil || part(v) < part(*found)) {
			found = &g.Volumes[i]
		}
	}
	return found
}

func part(v Volume) float64 { return float64(v.Free()) / float64(v.Size) }

// pending is a volume that has not got what was asked for, or whose file system does not have its size yet, "" for
// none. A file system is some hundredths smaller than its volume; one that stays smaller is not waited for.
func (g Growth) pending() string {
	for _, v := range g.Volumes {
		if v.Has > 0 && v.Has < v.Asked || v.Has == 0 {
			return v.Name
		}
		if v.Known && v.Size < v.Has/100*85 && g.Now.Sub(g.GrownAt) < settles {
			return v.Name
		}
	}
	return ""
}

// next is the size that they get.
func (g Growth) next() int64 {
	by := g.Size / growBy
	if !g.GrownAt.IsZero() && g.Now.Sub(g.GrownAt) < growOften {
		by = g.Size / growMore
	}
	size := g.Size + by
	for _, v := range g.Volumes {
		if v.Known && v.RateKnown {
			size = max(size, (v.Used+growFor*v.PerDay)/(shortPart-1)*shortPart)
		}
	}
	size = min(size, 2*g.Size)
	step := gib
	if size < 4*gib {
		step = 64 * mib
	}
	return min((size+step-1)/step*step, g.Limit)
}
