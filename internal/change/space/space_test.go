package space

import (
	"testing"
	"time"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// hourly are the samples of so many hours, of what is used by the hour.
func hourly(hours int, used func(hour int) int64) []Sample {
	var out []Sample
	for h := range hours + 1 {
		out = Add(out, Sample{At: monday.Add(time.Duration(h) * time.Hour), Used: used(h)})
	}
	return out
}

func TestTheRateIsThatOfMostDays(t *testing.T) {
	for name, c := range map[string]struct {
		hours int
		used  func(hour int) int64
		want  int64
		known bool
	}{
		"nothing changes":                     {200, func(int) int64 { return 5 * gib }, 0, true},
		"it fills steadily":                   {200, func(h int) int64 { return int64(h) * gib }, 24 * gib, true},
		"it fills steadily since three hours": {3, func(h int) int64 { return int64(h) * gib }, 24 * gib, true},
		"two hours are too few":               {2, func(h int) int64 { return int64(h) * gib }, 0, false},
		"each night it is filled with 10 GiB": {200, func(h int) int64 { return int64((h+20)/24) * 10 * gib }, 10 * gib,
			true},
		"it becomes emptier":                   {200, func(h int) int64 { return int64(1000-h) * gib }, 0, true},
		"one large load in a week is no trend": {200, func(h int) int64 { return step(h > 150, 100*gib) }, 0, true},
		"a load of three days of seven is none": {168, func(h int) int64 { return int64(min(max(h-30, 0), 60)) * gib },
			0, true},
		"one large load beside a steady rate": {200, func(h int) int64 { return int64(h)*gib + step(h > 150, 100*gib) },
			24 * gib, true},
		"a load of an hour of three is none": {3, func(h int) int64 { return step(h > 1, 100*gib) }, 0, true},
		"WAL comes and goes":                 {200, func(h int) int64 { return 5*gib + int64(h%3)*gib }, 0, true},
		"what was emptied once fills on": {200, func(h int) int64 { return int64(h)*gib - step(h > 100, 90*gib) },
			24 * gib, true},
	} {
		got, _, known := Rate(hourly(c.hours, c.used))
		if known != c.known || got != c.want {
			t.Errorf("%s: it is %d MiB a day, known %v; want %d, %v", name, got/mib, known, c.want/mib, c.known)
		}
	}
}

func step(done bool, by int64) int64 {
	if done {
		return by
	}
	return 0
}

// An agent that was away for a day has no samples of it: what was filled meanwhile counts.
func TestTheRateTakesAGapForALine(t *testing.T) {
	var samples []Sample
	for _, s := range hourly(200, func(h int) int64 { return int64(h) * gib }) {
		if h := s.At.Sub(monday) / time.Hour; h < 100 || h > 150 {
			samples = append(samples, s)
		}
	}
	if got, _, known := Rate(samples); !known || got != 24*gib {
		t.Errorf("it is %d MiB a day, %v", got/mib, known)
	}
}

func TestSamplesAreForgottenAfterAWeek(t *testing.T) {
	all := hourly(2000, func(h int) int64 { return int64(h) })
	if len(all) != 170 {
		t.Errorf("there are %d", len(all))
	}
	if _, over, _ := Rate(all); over != window {
		t.Errorf("it is measured over %s", over)
	}
	back := Add(all, Sample{At: monday, Used: 1})
	if len(back) != 1 {
		t.Errorf("a clock that was ahead leaves %d samples", len(back))
	}
}

func TestWhenAVolumeIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		free, perDay int64
		want         time.Duration
		never        bool
	}{
		"in ten days":                    {10 * gib, gib, 10 * Day, false},
		"in half a day":                  {gib, 2 * gib, Day / 2, false},
		"it is":                          {0, gib, 0, false},
		"not while nothing fills it":     {gib, 0, 0, true},
		"not in a time that can be said": {gib, 1, 0, true},
	} {
		if in, never := FullIn(c.free, c.perDay); in != c.want || never != c.never {
			t.Errorf("%s: it is %s, %v", name, in, never)
		}
	}
}
