package space

import (
	"fmt"
	"sort"
)

// The answers to whether what is on some volumes fits on smaller ones.
const (
	Fits       = "Fits"       // it does, and the new volumes would not be short
	DoesNotFit = "DoesNotFit" // they would
	NotKnown   = "NotKnown"   // an instance does not say how full its volume is
)

// leastOverhead is the part of a new volume, in hundredths, that its file system is thought to need itself: that is not
// known before it is there. sizeStep is the step of the sizes that are advised.
const (
	leastOverhead = 7
	sizeStep      = 64 * mib
)

// Fit is whether what is on volumes fits on others, and why. Least is the smallest size that would do, 0 where that is
// not known.
type Fit struct {
	Answer  string
	Least   int64
	Message string
}

// FitsOn says whether what is on any of these volumes fits on one of a size. It fits where such a volume would not be
// short: so none is made that would grow at once. What is not known is not a yes.
func FitsOn(volumes []Volume, size int64) Fit {
	if len(volumes) == 0 {
		return Fit{Answer: NotKnown, Message: "no instance says how full its volume is"}
	}
	for _, v := range volumes {
		if !v.Known || v.Size <= 0 {
			return Fit{Answer: NotKnown, Message: fmt.Sprintf("how full volume %s is is not known", v.Name)}
		}
	}
	short := func(size int64) *Volume {
		for i, v := range volumes {
			if on(v, size, volumes).Short() {
				return &volumes[i]
			}
		}
		return nil
	}
	full := short(size)
	if full == nil {
		most := fullest(volumes)
		return Fit{Answer: Fits, Least: size, Message: fmt.Sprintf("the data fits: volume %s holds %s, and one of %s "+
			"can hold %s", most.Name, Amount(most.Used), Amount(size), Amount(on(most, size, volumes).Size))}
	}
	largest := size
	for short(largest) != nil {
		largest *= 2
	}
	steps := sort.Search(int(largest/sizeStep), func(n int) bool { return short(int64(n+1)*sizeStep) == nil })
	least, made := int64(steps+1)*sizeStep, on(*full, size, volumes).Size
	return Fit{Answer: DoesNotFit, Least: least, Message: fmt.Sprintf("the data does not fit: volume %s holds %s "+
		"(data, WAL and the reserve)%s, and one of %s can hold %s, of which %s are to stay free. Delete what is not "+
		"needed, or make storage.size at least %s", full.Name, Amount(full.Used), atRate(*full), Amount(size),
		Amount(made), Amount(BoundsOf(made).Short), exactly(least))}
}

func atRate(v Volume) string {
	if !v.RateKnown || v.PerDay <= 0 {
		return ""
	}
	return fmt.Sprintf(" and fills by %s a day", Amount(v.PerDay))
}

// on is what a volume of a size would be with what is on another one.
func on(v Volume, size int64, all []Volume) Volume {
	part := float64(100-leastOverhead) / 100
	for _, other := range all {
		if other.Has > 0 {
			part = min(part, float64(other.Size)/float64(other.Has))
		}
	}
	v.Size = int64(float64(size) * part)
	return v
}

// fullest is the volume on which the most is.
func fullest(volumes []Volume) Volume {
	out := volumes[0]
	for _, v := range volumes {
		if v.Used > out.Used {
			out = v
		}
	}
	return out
}

// Amount is a number of bytes for people, in Mi or Gi: a tenth more or less does not matter to them.
func Amount(bytes int64) string {
	switch {
	case bytes < mib:
		return "0"
	case bytes < gib:
		return fmt.Sprintf("%dMi", bytes/mib)
	case bytes < 100*gib:
		return fmt.Sprintf("%.1fGi", float64(bytes)/float64(gib))
	}
	return fmt.Sprintf("%dGi", bytes/gib)
}

// exactly is a size in steps of sizeStep, to be written into a spec.
func exactly(size int64) string {
	if size%gib == 0 {
		return fmt.Sprintf("%dGi", size/gib)
	}
	return fmt.Sprintf("%dMi", size/mib)
}
