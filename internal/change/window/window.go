// Package window is about times that come again each day, or on some days of the week: when instances may be replaced,
// and when a database is stopped.
package window

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// Window is a time that comes again: it opens at a time of day, in a time zone.
type Window struct {
	// Days are those on which it opens, every day where there are none.
	Days         []time.Weekday
	Hour, Minute int
	// Length is how long it is open, by a clock that is never put forward or back: at most 24 hours.
	Length   time.Duration
	Location *time.Location
}

// Parse reads a window as the spec has it: the days by their English names, the start as 15:04, the time zone by
// its name, UTC for "". Its errors are sentences for the user, which begin with the field.
func Parse(days []string, start string, length time.Duration, zone string) (Window, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Window{}, fmt.Errorf("timeZone %q is not known: it must be a name such as Asia/Tokyo",
			zone)
	}
	at, err := time.Parse("15:04", start)
	if err != nil {
		return Window{}, fmt.Errorf("start %q must be a time of day such as 03:00", start)
	}
	if length <= 0 || length > 24*time.Hour {
		return Window{}, fmt.Errorf("duration %s must be at most 24h", length)
	}
	w := Window{Hour: at.Hour(), Minute: at.Minute(), Length: length, Location: location}
	for _, name := range days {
		day, known := weekday(name)
		if !known {
			return Window{}, fmt.Errorf("days has %q, which is no day such as Sunday", name)
		}
		w.Days = append(w.Days, day)
	}
	return w, nil
}

func weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if day.String() == name {
			return day, true
		}
	}
	return 0, false
}

// Open says whether the window is open. One that opened yesterday may still be.
func (w Window) Open(now time.Time) bool {
	_, open := w.opened(now)
	return open
}

// opened is when the window opened that is open now, false where it is not.
func (w Window) opened(now time.Time) (time.Time, bool) {
	for _, offset := range []int{-1, 0} {
		begin, opens := w.opening(now, offset)
		if opens && !now.Before(begin) && now.Before(begin.Add(w.Length)) {
			return begin, true
		}
	}
	return time.Time{}, false
}

// Next is when the window opens next, in UTC.
func (w Window) Next(now time.Time) time.Time {
	for offset := range 9 {
		if begin, opens := w.opening(now, offset); opens && begin.After(now) {
			return begin.UTC()
		}
	}
	return time.Time{} // it has no day: not from Parse
}

// opening is when the window opens on the day that is some days after that of now, false where it does not. Where
// clocks are put forward over that time, it opens up to an hour earlier or later; where they are put back, it opens
// once.
func (w Window) opening(now time.Time, offset int) (time.Time, bool) {
	year, month, day := now.In(w.Location).Date()
	noon := time.Date(year, month, day+offset, 12, 0, 0, 0, w.Location)
	if len(w.Days) > 0 && !slices.Contains(w.Days, noon.Weekday()) {
		return time.Time{}, false
	}
	year, month, day = noon.Date()
	return time.Date(year, month, day, w.Hour, w.Minute, 0, 0, w.Location), true
}

// Quiet is the hour of the week in which something is restarted for which nobody has chosen a time: on some day,
// beginning between one and five o'clock in a time zone, always the same for a name, and spread over many. Where the
// database is stopped then by some windows, it is the last hour before that none of them touches; false where there is
// none.
func Quiet(name, zone string, stops []Window, now time.Time) (w Window, found bool, err error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	minute := int(hash.Sum32() % (7 * quietMinutes))
	hours := minute/quietMinutes*24 + 1 + minute%quietMinutes/60 // of the week
	if w, err = Parse(nil, "00:00", time.Hour, zone); err != nil {
		return Window{}, false, err
	}
	w.Minute = minute % 60
	for before := range week {
		hour := (hours - before + week) % week
		w.Days, w.Hour = []time.Weekday{time.Weekday(hour / 24)}, hour%24
		begin := w.Next(now)
		_, stopped := Until(stops, begin, time.Time{})
		next := NextOf(stops, begin)
		if !stopped && (next.IsZero() || !next.Before(begin.Add(w.Length))) {
			return w, true, nil
		}
	}
	return Window{}, false, nil
}

// week is the hours of one.
const week = 7 * 24

// quietMinutes are those of a day in which a quiet hour may begin.
const quietMinutes = 4 * 60

// Until is until when one window after the other is open, in UTC; false where none is now. Those that opened before a
// moment do not count.
func Until(all []Window, now, after time.Time) (until time.Time, open bool) {
	until = now
	for range most {
		before := until
		for _, w := range all {
			if begin, is := w.opened(before); is && begin.After(after) && begin.Add(w.Length).After(until) {
				until = begin.Add(w.Length)
			}
		}
		if !until.After(before) {
			break
		}
	}
	return until.UTC(), until.After(now)
}

// most is how many windows are followed that open one after the other: where there is no end, Until names one far away.
const most = 64

// NextOf is when the next of some windows opens after a moment, in UTC, zero where there are none.
func NextOf(all []Window, now time.Time) (next time.Time) {
	for _, w := range all {
		if begin := w.Next(now); next.IsZero() || begin.Before(next) {
			next = begin
		}
	}
	return next
}
