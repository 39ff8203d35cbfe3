package desired

import (
	"cmp"
	"fmt"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/change/window"
)

// Permission is when the spec lets updates begin for which somebody has chosen the time. An error is of the window, and
// for the user.
func Permission(db *v1.SampleDB) (p upgrade.Permission, err error) {
	spec := db.Spec.Update
	if spec == nil || spec.Window == nil {
		return p, nil
	}
	of := *spec.Window
	of.TimeZone = cmp.Or(of.TimeZone, spec.TimeZone)
	at, err := ParseWindow(of)
	if err != nil {
		return p, fmt.Errorf("spec.update.window.%w", err)
	}
	p.Window, p.Automatic = &at, spec.Mode != v1.UpdateOnRequest
	return p, nil
}

// MinorPermission is when the spec lets an update to a newer minor version begin: without a window in the quiet hour of
// the SampleDB, by itself, where nothing prevents that. An error is for the user.
func MinorPermission(db *v1.SampleDB, now time.Time) (upgrade.Permission, error) {
	p, err := Permission(db)
	spec := cmp.Or(db.Spec.Update, &v1.UpdateSpec{})
	p.Automatic = spec.Mode != v1.UpdateOnRequest && !spec.None
	if err != nil || p.Window != nil {
		return p, err
	}
	var stops []window.Window
	for _, w := range db.Spec.StopWindows {
		if stop, err := ParseWindow(w); err == nil { // one that can't be read stops nothing, and is told elsewhere
			stops = append(stops, stop)
		}
	}
	quiet, found, err := window.Quiet(db.Namespace+"/"+db.Name, spec.TimeZone, stops, now)
	if err != nil {
		return p, fmt.Errorf("spec.update.%w", err)
	}
	if p.Quiet = found; found {
		p.Window = &quiet
	}
	return p, nil
}

// ParseWindow reads a window. Its errors begin with the field.
func ParseWindow(w v1.Window) (window.Window, error) {
	var days []string
	for _, day := range w.Days {
		days = append(days, string(day))
	}
	return window.Parse(days, w.Start, w.Duration.Duration, w.TimeZone)
}
