// Package space says how fast a volume fills, when it is full at that rate, and whether volumes that may grow by
// themselves do. All of it is pure: agents measure, the operator asks for larger volumes.
package space

import (
	"slices"
	"time"
)

const (
	// SampleInterval is how often it is noted how much is used.
	SampleInterval = time.Hour
	// window is for how long that is remembered.
	window = 7 * Day
	// spans are into how many equal parts that time is divided at most; leastSpan is how long each is at least, and
	// leastSpans how many of those it takes until a rate is known.
	spans, leastSpans = 7, 3
	leastSpan         = time.Hour
	// Day is what rates are by.
	Day = 24 * time.Hour
)

// Sample is how much of a volume was used at a moment.
type Sample struct {
	At   time.Time `json:"at"`
	Used int64     `json:"used"` // in bytes
}

// Add adds a sample to those there are, in their order, and forgets what is too old, or later than it: a clock that was
// ahead must not count.
func Add(samples []Sample, now Sample) []Sample {
	kept := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
		return now.At.Sub(s.At) > window+SampleInterval || !s.At.Before(now.At)
	})
	slices.SortFunc(kept, func(a, b Sample) int { return a.At.Compare(b.At) })
	return append(kept, now)
}

// Rate is by how many bytes a volume fills a day, 0 where it does not, and over what time that was measured. It is the
// median of equal spans of the time that the samples are of: what happened in less than half of these is no trend.
// Where too little is known it is not known, which is not the same as 0. The samples are in the order of their time.
func Rate(samples []Sample) (perDay int64, over time.Duration, known bool) {
	if len(samples) < 2 {
		return 0, 0, false
	}
	first, last := samples[0], samples[len(samples)-1]
	over = min(last.At.Sub(first.At), window)
	n := min(spans, int(over/leastSpan))
	if n < leastSpans {
		return 0, over, false
	}
	span := over / time.Duration(n)
	increments := make([]float64, n)
	for i := range n {
		end := last.At.Add(-time.Duration(i) * span)
		increments[i] = usedAt(samples, end) - usedAt(samples, end.Add(-span))
	}
	slices.Sort(increments)
	median := (increments[(n-1)/2] + increments[n/2]) / 2
	return int64(max(median, 0) * float64(Day) / float64(span)), over, true
}

// usedAt is how much was used at a moment between the first and the last sample: on the line between the two around it.
func usedAt(samples []Sample, at time.Time) float64 {
	next := slices.IndexFunc(samples, func(s Sample) bool { return !s.At.Before(at) })
	switch {
	case next < 0:
		return float64(samples[len(samples)-1].Used)
	case next == 0 || samples[next].At.Equal(at):
		return float64(samples[next].Used)
	}
	before, after := samples[next-1], samples[next]
	part := float64(at.Sub(before.At)) / float64(after.At.Sub(before.At))
	return float64(before.Used) + part*float64(after.Used-before.Used)
}

// FullIn is in what time so much of a volume is used up at a rate; never says that it is not at all.
func FullIn(free, perDay int64) (in time.Duration, never bool) {
	days := float64(max(free, 0)) / float64(perDay)
	if perDay <= 0 || days > 36500 {
		return 0, true
	}
	return time.Duration(days * float64(Day)), false
}
