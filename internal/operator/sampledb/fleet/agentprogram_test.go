package fleet

import (
	"testing"
	"time"

	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/change/window"
	"toban.dev/internal/protocol"
)

func TestDecideWhichAgentIsReplaced(t *testing.T) {
	t.Parallel()
	sunday := time.Date(2026, 11, 22, 3, 30, 0, 0, time.UTC)
	windowed, err := window.Parse([]string{"Sunday"}, "03:00", time.Hour, "UTC")
	if err != nil {
		t.Fatal(err)
	}
	automatic := upgrade.Permission{Window: &windowed, Automatic: true}
	onRequest := upgrade.Permission{Window: &windowed}
	inWindow := upgrade.Permission{Window: &windowed, Asked: true, InWindow: true}
	asked := upgrade.Permission{Window: &windowed, Asked: true}
	older := protocol.Program{SHA256: "a", Architecture: "amd64"}
	target := protocol.Program{SHA256: "b", Architecture: "amd64"}
	failed := func(busy bool) *protocol.Program {
		p := older
		p.Failed = &protocol.ProgramFailure{SHA256: "b", Message: "why", Busy: busy}
		return &p
	}
	// A primary (0) and two standbys with the former program, changed by the case.
	with := func(changes ...func(*agentView)) agentView {
		v := agentView{target: target, Permission: upgrade.Permission{Asked: true}, now: sunday, agents: []agentSeen{
			{name: "x-0", primary: true, answers: true, runs: &older}, {name: "x-1", answers: true, runs: &older},
			{name: "x-2", answers: true, runs: &older},
		}}
		for _, change := range changes {
			change(&v)
		}
		return v
	}
	run := func(program *protocol.Program, which ...int) func(*agentView) {
		return func(v *agentView) {
			for _, i := range which {
				v.agents[i].runs = program
			}
		}
	}
	tried := func(i int, late, ended bool) func(*agentView) {
		return func(v *agentView) { a := &v.agents[i]; a.tried, a.late, a.ended = true, late, ended }
	}
	permission := func(p upgrade.Permission) func(*agentView) { return func(v *agentView) { v.Permission = p } }
	closed := func(v *agentView) { v.now = sunday.Add(12 * time.Hour) }
	busy := func(v *agentView) { v.busy = "something else" }
	silent := func(v *agentView) { v.agents[2].answers, v.agents[2].runs = false, nil }
	foreign := protocol.Program{SHA256: "a", Architecture: "arm64"}
	once := protocol.Program{SHA256: "a", Architecture: "amd64", Failed: &protocol.ProgramFailure{SHA256: "0"}}
	for name, c := range map[string]struct {
		view         agentView
		give, reason string
	}{
		"all have it":                    {with(run(&target, 0, 1, 2)), "", agentsCurrent},
		"a standby is first":             {with(), "x-2", agentsGive},
		"then the other one":             {with(run(&target, 2)), "x-1", agentsGive},
		"the primary is last":            {with(run(&target, 1, 2)), "x-0", agentsGive},
		"one at a time":                  {with(tried(2, false, false)), "", agentsWait},
		"given, and nothing came of it":  {with(tried(2, true, false)), "x-2", agentsGive},
		"the moment was not good":        {with(tried(2, false, false), run(failed(true), 2)), "x-2", agentsGive},
		"it was refused":                 {with(tried(2, false, false), run(failed(false), 2)), "", agentsFailed},
		"the container has ended by it":  {with(tried(2, false, true)), "", agentsFailed},
		"a failure stops the others":     {with(run(failed(false), 2), run(&target, 1)), "", agentsFailed},
		"the container ended later":      {with(run(&target, 0, 1, 2), tried(2, true, true)), "", agentsCurrent},
		"something else is done":         {with(busy), "", agentsNotReady},
		"nobody asks":                    {with(permission(upgrade.Permission{})), "", agentsNotAsked},
		"nobody asks, and one runs it":   {with(permission(upgrade.Permission{}), run(&target, 2)), "", agentsNotAsked},
		"in the window by itself":        {with(permission(automatic)), "x-2", agentsGive},
		"the window is closed":           {with(permission(automatic), closed), "", agentsWindow},
		"it has closed in the middle":    {with(permission(automatic), closed, run(&target, 2)), "", agentsWindow},
		"a window, and only on request":  {with(permission(onRequest)), "", agentsNotAsked},
		"asked for the next window":      {with(permission(inWindow)), "x-2", agentsGive},
		"which is closed":                {with(permission(inWindow), closed), "", agentsWindow},
		"asked for outside of it":        {with(permission(asked), closed), "x-2", agentsGive},
		"releases that can't":            {with(run(nil, 0, 1, 2)), "", agentsOlder},
		"the one that can":               {with(run(nil, 0, 1)), "x-2", agentsGive},
		"the others can't":               {with(run(nil, 0), run(&target, 1, 2)), "", agentsOlder},
		"one does not answer":            {with(silent, run(&target, 0, 1), busy), "", agentsNotReady},
		"one does not answer, not ready": {with(silent, busy), "", agentsNotReady},
		"another architecture":           {with(run(&foreign, 0, 1, 2)), "", agentsForeign},
		"of several architectures":       {with(run(&foreign, 2)), "x-1", agentsGive},
		"a failure of an earlier target": {with(run(&once, 2)), "x-2", agentsGive},
	} {
		if d := decideAgent(c.view); d.give != c.give || d.reason != c.reason {
			t.Errorf("%s: gives %q, %s (%s), want %q, %s", name, d.give, d.reason, d.message, c.give, c.reason)
		}
	}
}
