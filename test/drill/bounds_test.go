package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/test/outside"
)

func TestEveryFaultHasABound(t *testing.T) {
	o := options{lossy: 30 * time.Second}
	all := faults(o)
	for _, f := range all {
		if without := f.bound == (outside.Bound{}); without != (f.name == unbounded) {
			t.Errorf("%s has the bound %+v", f.name, f.bound)
		}
	}
	for name := range bounds(o) {
		if !slices.ContainsFunc(all, func(f fault) bool { return f.name == name }) {
			t.Errorf("there is a bound for %s, which is no fault", name)
		}
	}
	short, err := choose(all, shortDrill, "")
	if err != nil || len(short) < 6 || strings.Contains(shortDrill, unbounded) {
		t.Errorf("the short drill has %d faults: %v", len(short), err)
	}
	if both := (pair{all[0], all[1], time.Second}).compose(); both.bound != (outside.Bound{}) {
		t.Errorf("two faults, which may take the majority away, have the bound %+v", both.bound)
	}
}

func TestAnOutageIsTooLong(t *testing.T) {
	o := options{lossy: 30 * time.Second}
	named := func(name string) fault {
		all := faults(o)
		return all[slices.IndexFunc(all, func(f fault) bool { return f.name == name })]
	}
	const service, hosts = string(PathService) + ": ", string(PathMulti) + ": "
	for name, c := range map[string]struct {
		run   Run
		fault string
		want  []string // the ways that are named
	}{
		"as fast as ever":                     {Run{Service: 1.2, Multi: 0.9}, "switchover", nil},
		"the Service is too late":             {Run{Service: 20.1, Multi: 0.9}, "switchover", []string{service}},
		"all are too late":                    {Run{Service: 31, Multi: 30.1}, "node-cut", []string{service, hosts}},
		"a pooler is":                         {Run{Pooler: 31}, "postmaster-killed", []string{"pooler: "}},
		"as long as the packets are lost":     {Run{Service: 59, Multi: 59}, "lossy-and-busy", nil},
		"long after that":                     {Run{Service: 59, Multi: 61}, "lossy-and-busy", []string{hosts}},
		"the Service while the API is away":   {Run{Service: 38, Multi: 0.6}, "api-away", nil},
		"several hosts while the API is away": {Run{Service: 38, Multi: 38}, "api-away", []string{hosts}},
		"nothing is promised":                 {Run{Service: 38, Multi: 38}, unbounded, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.run.tooLong(named(c.fault))
			if len(got) != len(c.want) {
				t.Fatalf("it says %q, want %q", got, c.want)
			}
			for i, words := range c.want {
				if !strings.HasPrefix(got[i], words) {
					t.Errorf("it says %q, want %q", got[i], words)
				}
			}
		})
	}
}

// What is too long is a problem of the round, by which the short drill fails.
func TestAnOutageThatIsTooLongIsAProblem(t *testing.T) {
	c := &clients{history: newHistory()}
	for second := range 40 {
		at := time.Duration(second) * time.Second
		if at < 3*time.Second || at > 35*time.Second {
			for _, path := range []Path{PathService, PathMulti} {
				c.noteWrite(write{path: path, start: at, end: at, outcome: Acked})
			}
		}
	}
	for most, problems := range map[time.Duration]int{33 * time.Second: 2, 34 * time.Second: 0} {
		var r Run
		r.judge(c, fault{bound: outside.Bound{Most: most}}, time.Second, 39*time.Second)
		if len(r.wrongs()) != problems {
			t.Errorf("34 s, of which %s are borne: %q", most, r.wrongs())
		}
	}
}
