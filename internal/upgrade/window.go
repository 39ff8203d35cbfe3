package upgrade

import (
	"fmt"
	"slices"
	"time"
)

// Window is when instances may be replaced by themselves: it opens at a time of day, in a time zone.
type Window struct {
	// Days are those on which it opens, every day where there are none.
	Days         []time.Weekday
	Hour, Minute int
	// Length is how long it is open, by a clock that is never put forward or back: at most 24 hours.
	Length   time.Duration
	Location *time.Location
}

// ParseWindow reads a window as the spec has it: the days by their English names, the start as 15:04, the time zone by
// its name, UTC for "". Its errors are sentences for the user.
func ParseWindow(days []string, start string, length time.Duration, zone string) (Window, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Window{}, fmt.Errorf("spec.update.window.timeZone %q is not known: it must be a name such as Asia/Tokyo",
			zone)
	}
	at, err := time.Parse("15:04", start)
	if err != nil {
		return Window{}, fmt.Errorf("spec.update.window.start %q must be a time of day such as 03:00", start)
	}
	if length <= 0 || length > 24*time.Hour {
		return Window{}, fmt.Errorf("spec.update.window.duration %s must be at most 24h", length)
	}
	w := Window{Hour: at.Hour(), Minute: at.Minute(), Length: length, Location: location}
	for _, name := range days {
		day, known := weekday(name)
		if !known {
			return Window{}, fmt.Errorf("spec.update.window.days has %q, which is no day such as Sunday", name)
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
	for _, offset := range []int{-1, 0} {
		begin, opens := w.opening(now, offset)
		if opens && !now.Before(begin) && now.Before(begin.Add(w.Length)) {
			return true
		}
	}
	return false
}

// Next is when the window opens next, in UTC.
func (w Window) Next(now time.Time) time.Time {
	for offset := range 9 {
		if begin, opens := w.opening(now, offset); opens && begin.After(now) {
			return begin.UTC()
		}
	}
	return time.Time{} // it has no day: not from ParseWindow
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
