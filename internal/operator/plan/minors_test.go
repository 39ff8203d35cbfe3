package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// When newer minor versions come is told where the change has a part in that: of a SampleDB that is made, of one whose
// permission changes, and of one that a newer version is announced for.
func TestWhenNewerMinorVersionsComeIsTold(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	announced := metav1.NewTime(now.Add(15 * time.Hour))
	const quiet = "in a quiet hour of each week (next from 2026-1"
	none := func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{None: true} }
	tokyo := func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{TimeZone: "Asia/Tokyo"} }
	night := v1.Window{Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}
	ahead := v1.UpdateStatus{From: "17.11", To: "17.12", Begins: &announced}
	more := func(db *v1.SampleDB) { db.Spec.Instances = 5 }
	for name, test := range map[string]struct {
		before, after func(*v1.SampleDB)
		want          string // "" for nothing
	}{
		"the same":      {nil, more, ""},
		"another zone":  {nil, tokyo, quiet},
		"none":          {nil, none, "on request alone"},
		"no more none":  {none, func(db *v1.SampleDB) { db.Spec.Update = nil }, quiet},
		"always as is":  {none, none, ""},
		"by its digest": {nil, func(db *v1.SampleDB) { db.Spec.Image = "postgres@sha256:ab" }, "never taken over"},
		"a window": {nil, func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{Window: &night} },
			"when update.window opens (next 2026-11-23T22:00:00Z): standbys restart first"},
		"announced, and another image is wanted": {func(db *v1.SampleDB) { db.Status.Update = &ahead },
			func(db *v1.SampleDB) { db.Spec.Image = "other:17" }, ""},
		"announced": {func(db *v1.SampleDB) { db.Status.Update = &ahead }, more,
			"PostgreSQL 17.12 takes the place of 17.11 at 2026-11-24T03:00:00Z"},
	} {
		before := shop()
		if test.before != nil {
			test.before(before)
		}
		seen := running(t, before)
		seen.Now = now
		got := of(t, before, seen, test.after).Minors
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
	made, err := Of(nil, shop(), Seen{Now: now})
	const rest = "standbys restart first, and then the primary hands over. update: {none: true} prevents that"
	if err != nil || !strings.Contains(made.Minors, quiet) || !strings.HasSuffix(made.Minors, rest) {
		t.Errorf("of one that is made: %q (%v)", made.Minors, err)
	}
	alone := shop()
	alone.Spec.Instances = 1
	made, err = Of(nil, alone, Seen{Now: now})
	if err != nil || !strings.Contains(made.Minors, "nobody can read or write") {
		t.Errorf("of one instance: %q (%v)", made.Minors, err)
	}
}

// The hour that is told is one that can still be announced in time.
func TestTheHourThatIsToldCanBeAnnounced(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	first := whenMinors(shop(), now)
	for whenMinors(shop(), now) == first {
		now = now.Add(time.Hour)
	}
	_, text, _ := strings.Cut(first, "next from ")
	begins, err := time.Parse(time.RFC3339, text[:len("2026-11-24T03:00:00Z")])
	if ahead := begins.Sub(now); err != nil || ahead < 11*time.Hour || ahead > 12*time.Hour {
		t.Errorf("%s before it begins another hour is told (%v)", ahead, err)
	}
}
