package window

import (
	"fmt"
	"reflect"
	"testing"
	"time"
	_ "time/tzdata"
)

// at reads a moment in a time zone.
func at(t *testing.T, text, zone string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04:05", text, location)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func parsed(t *testing.T, days []string, start string, length time.Duration, zone string) Window {
	t.Helper()
	w, err := Parse(days, start, length, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAWindowIsOpen(t *testing.T) {
	sunday := []string{"Sunday"} // 2026-11-22 is one
	for name, c := range map[string]struct {
		days        []string
		start       string
		length      time.Duration
		zone        string
		now         string
		open        bool
		nextOpening string // in the zone
	}{
		"before":           {nil, "03:00", time.Hour, "", "2026-11-23 02:59:59", false, "2026-11-23 03:00:00"},
		"its first moment": {nil, "03:00", time.Hour, "", "2026-11-23 03:00:00", true, "2026-11-24 03:00:00"},
		"its last second":  {nil, "03:00", time.Hour, "", "2026-11-23 03:59:59", true, "2026-11-24 03:00:00"},
		"its end":          {nil, "03:00", time.Hour, "", "2026-11-23 04:00:00", false, "2026-11-24 03:00:00"},
		"another day":      {sunday, "03:00", time.Hour, "", "2026-11-23 03:30:00", false, "2026-11-29 03:00:00"},
		"its day":          {sunday, "03:00", time.Hour, "", "2026-11-22 03:30:00", true, "2026-11-29 03:00:00"},
		"over midnight":    {sunday, "23:00", 3 * time.Hour, "", "2026-11-23 01:59:59", true, "2026-11-29 23:00:00"},
		"after midnight and its end": {sunday, "23:00", 3 * time.Hour, "", "2026-11-23 02:00:00", false,
			"2026-11-29 23:00:00"},
		"the day before, after midnight": {sunday, "23:00", 3 * time.Hour, "", "2026-11-22 01:00:00", false,
			"2026-11-22 23:00:00"},
		"in Tokyo it is Sunday already": {sunday, "03:00", time.Hour, "Asia/Tokyo", "2026-11-22 03:30:00", true,
			"2026-11-29 03:00:00"},
		"all day": {nil, "00:00", 24 * time.Hour, "", "2026-11-23 23:59:59", true, "2026-11-24 00:00:00"},
		"all day, on the day of 25 hours": {nil, "00:00", 24 * time.Hour, "Europe/Berlin", "2026-10-25 23:30:00",
			false, "2026-10-26 00:00:00"},
		"after clocks were put forward": {nil, "03:00", time.Hour, "Europe/Berlin", "2026-03-30 03:30:00", true,
			"2026-03-31 03:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			w := parsed(t, c.days, c.start, c.length, c.zone)
			now := at(t, c.now, c.zone)
			if got := w.Open(now.UTC()); got != c.open {
				t.Errorf("open: %t", got)
			}
			if next := at(t, c.nextOpening, c.zone); !w.Next(now.UTC()).Equal(next) {
				t.Errorf("it opens at %s", w.Next(now))
			}
		})
	}
}

// On each day, also those on which clocks are put forward or back over its start, the window opens once, within an hour
// of its start, and is open for its length.
func TestAWindowWhereClocksChange(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		w := parsed(t, nil, "02:15", 90*time.Minute, zone)
		for _, day := range []string{
			"2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01",
		} {
			opened, open := 0, 0
			begin := at(t, day+" 00:00:00", zone)
			end := time.Date(begin.Year(), begin.Month(), begin.Day()+1, 0, 0, 0, 0, begin.Location())
			was := false
			for now := begin; now.Before(end); now = now.Add(time.Minute) {
				is := w.Open(now)
				if is {
					open++
				}
				if is && !was {
					opened++
					if local := now.Hour()*60 + now.Minute(); local < 75 || local > 195 {
						t.Errorf("%s, %s: it opens at %s", zone, day, now)
					}
				}
				was = is
			}
			if opened != 1 || open != 90 {
				t.Errorf("%s, %s: it opens %d times, and is open for %d minutes", zone, day, opened, open)
			}
		}
	}
}

func TestAWindowThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		days        []string
		start, zone string
		length      time.Duration
	}{
		"no such zone":     {nil, "03:00", "Mars/Olympus", time.Hour},
		"the machine's":    {nil, "03:00", "Local", time.Hour},
		"no time of day":   {nil, "24:00", "", time.Hour},
		"no day":           {[]string{"Someday"}, "03:00", "", time.Hour},
		"no time at all":   {nil, "03:00", "", 0},
		"more than a day":  {nil, "03:00", "", 25 * time.Hour},
		"nothing is given": {},
	} {
		if w, err := Parse(c.days, c.start, c.length, c.zone); err == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestUntilWhenWindowsAreOpen(t *testing.T) {
	workdays := []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	nights := parsed(t, workdays, "20:00", 11*time.Hour, "Asia/Tokyo")
	weekend := parsed(t, []string{"Saturday", "Sunday"}, "00:00", 24*time.Hour, "Asia/Tokyo")
	monday := parsed(t, []string{"Monday"}, "00:00", 7*time.Hour, "Asia/Tokyo")
	always := parsed(t, nil, "00:00", 24*time.Hour, "")
	for name, c := range map[string]struct {
		windows    []Window
		now, after string // in Tokyo; 2026-11-27 is a Friday
		until      string // "" for closed
	}{
		"none":     {nil, "2026-11-27 21:00:00", "", ""},
		"by day":   {[]Window{nights}, "2026-11-27 12:00:00", "", ""},
		"by night": {[]Window{nights}, "2026-11-26 21:00:00", "", "2026-11-27 07:00:00"},
		"over the weekend": {[]Window{weekend, monday, nights}, "2026-11-27 21:00:00", "",
			"2026-11-30 07:00:00"},
		"Saturday":              {[]Window{weekend}, "2026-11-28 12:00:00", "", "2026-11-30 00:00:00"},
		"opened before":         {[]Window{nights}, "2026-11-26 21:00:00", "2026-11-26 20:30:00", ""},
		"opened at that moment": {[]Window{nights}, "2026-11-26 21:00:00", "2026-11-26 20:00:00", ""},
		"opened after": {[]Window{nights}, "2026-11-26 21:00:00", "2026-11-26 19:59:59",
			"2026-11-27 07:00:00"},
		"the next one is on": {[]Window{weekend}, "2026-11-29 00:00:00", "2026-11-28 12:00:00",
			"2026-11-30 00:00:00"},
		"the moment is still ahead": {[]Window{nights}, "2026-11-26 21:00:00", "2026-11-30 00:00:00", ""},
	} {
		after := time.Time{}
		if c.after != "" {
			after = at(t, c.after, "Asia/Tokyo")
		}
		now := at(t, c.now, "Asia/Tokyo")
		until, open := Until(c.windows, now, after)
		if open != (c.until != "") || open && !until.Equal(at(t, c.until, "Asia/Tokyo")) || !open && !until.Equal(now) {
			t.Errorf("%s: %t, until %s", name, open, until)
		}
	}
	now := at(t, "2026-11-27 12:00:00", "UTC")
	if until, open := Until([]Window{always}, now, time.Time{}); !open || until.Before(now.AddDate(0, 1, 0)) {
		t.Errorf("one that never closes: %t, until %s", open, until)
	}
}

func TestWhichWindowOpensNext(t *testing.T) {
	early, late := parsed(t, nil, "03:00", time.Hour, ""), parsed(t, nil, "20:00", time.Hour, "")
	now := at(t, "2026-11-27 12:00:00", "UTC")
	for name, c := range map[string]struct {
		windows []Window
		next    string
	}{
		"the one of today": {[]Window{early, late}, "2026-11-27 20:00:00"},
		"in another order": {[]Window{late, early}, "2026-11-27 20:00:00"},
		"that of each day": {[]Window{early}, "2026-11-28 03:00:00"},
	} {
		if next := NextOf(c.windows, now); !next.Equal(at(t, c.next, "UTC")) {
			t.Errorf("%s: %s", name, next)
		}
	}
	if next := NextOf(nil, now); !next.IsZero() {
		t.Errorf("of none: %s", next)
	}
}

// A quiet hour is always the same for a name, at night, and spread over the days and minutes of a week.
func TestAQuietHour(t *testing.T) {
	now := at(t, "2026-11-23 12:00:00", "UTC")
	zone := "Asia/Tokyo"
	days, minutes := map[time.Weekday]int{}, map[int]int{}
	for n := range 1000 {
		name := fmt.Sprintf("team-%d/shop-%d", n%7, n)
		w, found, err := Quiet(name, zone, nil, now)
		again, _, _ := Quiet(name, zone, nil, now.Add(100*24*time.Hour))
		if err != nil || !found || w.Hour < 1 || w.Hour > 4 || w.Length != time.Hour || len(w.Days) != 1 ||
			!reflect.DeepEqual(w, again) {
			t.Fatalf("%s: %+v, %v; later %+v", name, w, err, again)
		}
		if begin := w.Next(now); begin.In(w.Location).Hour() != w.Hour || begin.Sub(now) > 7*24*time.Hour {
			t.Fatalf("%s: %+v opens at %s", name, w, begin)
		}
		days[w.Days[0]]++
		minutes[w.Hour*60+w.Minute]++
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		if days[day] < 100 {
			t.Errorf("of 1000 are %d on a %s", days[day], day)
		}
	}
	if len(minutes) < 200 {
		t.Errorf("1000 begin in %d minutes", len(minutes))
	}
	if _, _, err := Quiet("a/b", "Mars/Olympus", nil, now); err == nil {
		t.Error("a zone that is none is taken")
	}
}

// A database that is stopped at night and on weekends has its quiet hour before that; one that never runs has none.
func TestAQuietHourOfADatabaseThatStops(t *testing.T) {
	now := at(t, "2026-11-23 12:00:00", "UTC")
	office := []Window{
		parsed(t, nil, "20:00", 11*time.Hour, "Europe/Berlin"),
		parsed(t, []string{"Saturday", "Sunday"}, "00:00", 24*time.Hour, "Europe/Berlin"),
	}
	always := []Window{parsed(t, nil, "00:00", 24*time.Hour, "")}
	for n := range 200 {
		name := fmt.Sprintf("team/shop-%d", n)
		w, found, err := Quiet(name, "", office, now)
		if err != nil || !found {
			t.Fatal(w, found, err)
		}
		begin := w.Next(now).In(office[0].Location)
		for m := range 60 {
			moment := begin.Add(time.Duration(m) * time.Minute)
			if office[0].Open(moment) || office[1].Open(moment) {
				t.Fatalf("%s: at %s it is stopped", name, moment)
			}
		}
		if begin.Hour() < 18 || begin.Weekday() == time.Saturday || begin.Weekday() == time.Sunday {
			t.Fatalf("%s: %s is not the last hour", name, begin)
		}
		if w, found, err := Quiet(name, "", always, now); err != nil || found {
			t.Fatalf("%s: %+v, %v", name, w, err)
		}
	}
}
