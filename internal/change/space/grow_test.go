package space

import (
	"strings"
	"testing"
	"time"
)

// tenGi are two volumes of 10 GiB of which so much is used.
func tenGi(used int64, change ...func(*Growth)) Growth {
	v := Volume{Asked: 10 * gib, Has: 10 * gib, Known: true, Size: 97 * gib / 10}
	primary, standby := v, v
	primary.Name, standby.Name, primary.Used, standby.Used = "data-x-0", "data-x-1", used, used/2
	g := Growth{Limit: 100 * gib, Size: 10 * gib, Volumes: []Volume{primary, standby}, Now: monday}
	for _, f := range change {
		f(&g)
	}
	return g
}

func TestVolumesGrow(t *testing.T) {
	rate := func(perDay int64) func(*Growth) {
		return func(g *Growth) { g.Volumes[0].PerDay, g.Volumes[0].RateKnown = perDay, true }
	}
	size := func(n int64) func(*Growth) {
		return func(g *Growth) {
			g.Size = n
			for i := range g.Volumes {
				v := &g.Volumes[i]
				v.Asked, v.Has, v.Size, v.Used = n, n, n, v.Used*n/(97*gib/10)
			}
		}
	}
	for name, c := range map[string]struct {
		growth Growth
		want   string
		to     int64
		says   string
	}{
		"they may not": {tenGi(9*gib, func(g *Growth) { g.Limit = 0 }), Off, 0, ""},
		"their class can't, which is said before they are short": {
			tenGi(0, func(g *Growth) { g.Fixed = "no allowVolumeExpansion" }), Fixed, 0, "no allowVolumeExpansion"},
		"a quarter is free": {tenGi(73 * gib / 10), Enough, 0, ""},
		"nothing is known of the one that is full": {
			tenGi(9*gib, func(g *Growth) { g.Volumes[0].Known = false }), Enough, 0, ""},
		"less than a fifth is free": {tenGi(8 * gib), Grows, 13 * gib, "data-x-0"},
		"the standby's is short": {tenGi(gib, func(g *Growth) { g.Volumes[1].Used = 9 * gib }), Grows, 13 * gib,
			"data-x-1"},
		"it is full in a day and half is used":     {tenGi(6*gib, rate(3*gib)), Grows, 20 * gib, "data-x-0"},
		"it is full in a day but half is not used": {tenGi(2*gib, rate(9*gib)), Enough, 0, ""},
		"that it fills fast is not known": {
			tenGi(6*gib, func(g *Growth) { g.Volumes[0].PerDay = 5 * gib }), Enough, 0, ""},
		"it lasts for a week":           {tenGi(8*gib, rate(gib/2)), Grows, 15 * gib, "data-x-0"},
		"it is never more than doubled": {tenGi(8*gib, rate(50*gib)), Grows, 20 * gib, "data-x-0"},
		"by more soon after the last": {tenGi(8*gib, func(g *Growth) { g.GrownAt = monday.Add(-time.Hour) }),
			Grows, 15 * gib, "data-x-0"},
		"by no more a day after": {tenGi(8*gib, func(g *Growth) { g.GrownAt = monday.Add(-Day) }),
			Grows, 13 * gib, "data-x-0"},
		"up to the limit": {tenGi(8*gib, func(g *Growth) { g.Limit = 11*gib + 7 }), Grows, 11*gib + 7, "data-x-0"},
		"at the limit":    {tenGi(8*gib, func(g *Growth) { g.Limit = 10 * gib }), LimitReached, 0, "raise that"},
		"the limit is below the size in force": {
			tenGi(8*gib, func(g *Growth) { g.Limit = 5 * gib }), LimitReached, 0, "raise that"},
		"a small one before writes are refused": {tenGi(0, size(512*mib), func(g *Growth) {
			g.Volumes[0].Used = g.Volumes[0].Size - 150*mib
		}), Grows, 640 * mib, "data-x-0"},
		"small ones by multiples of 64 MiB": {tenGi(8*gib, size(512*mib)), Grows, 640 * mib, "data-x-0"},
		"the claim of another is growing": {tenGi(8*gib, func(g *Growth) { g.Volumes[1].Asked = 13 * gib }),
			Pending, 0, "data-x-1 is still being enlarged"},
		"nothing is known of the claim of another": {tenGi(8*gib, func(g *Growth) { g.Volumes[1].Has = 0 }),
			Pending, 0, "data-x-1"},
		"the file system has not followed yet": {tenGi(8*gib, func(g *Growth) {
			g.Volumes[0].Asked, g.Volumes[0].Has, g.GrownAt = 13*gib, 13*gib, monday.Add(-time.Minute)
		}), Pending, 0, "data-x-0"},
		"the file system stays smaller": {tenGi(8*gib, func(g *Growth) {
			g.Size, g.Volumes[0].Asked, g.Volumes[0].Has, g.GrownAt = 13*gib, 13*gib, 13*gib, monday.Add(-time.Hour)
		}), Grows, 20 * gib, "data-x-0"},
		"the file system is the node's": {tenGi(0, func(g *Growth) {
			g.Volumes[0].Size, g.Volumes[0].Used = 500*gib, 450*gib
		}), Useless, 0, "larger than the volume"},
	} {
		d := Decide(c.growth)
		if d.Answer != c.want || d.To != c.to || !strings.Contains(d.Message, c.says) {
			t.Errorf("%s: it is %s to %d MiB (%s), want %s to %d MiB with %q", name, d.Answer, d.To/mib, d.Message,
				c.want, c.to/mib, c.says)
		}
		if d.Answer == Grows && d.To <= c.growth.Size {
			t.Errorf("%s: it grows from %d to %d", name, c.growth.Size, d.To)
		}
	}
}

// One that fills fast is looked at before it is short.
func TestHowSoonAVolumeIsShort(t *testing.T) {
	v := Volume{Known: true, Size: 10 * gib, Used: 6 * gib, Lately: gib}
	if in, never := v.ShortIn(); never || in != 2*time.Minute {
		t.Errorf("in %s, %v", in, never)
	}
	v.Used = 9 * gib
	if in, never := v.ShortIn(); never || in != 0 {
		t.Errorf("when it is short already: in %s, %v", in, never)
	}
	v.Lately = 0
	if _, never := v.ShortIn(); !never {
		t.Error("one that does not fill will be short")
	}
}
