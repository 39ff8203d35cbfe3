package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// without is what an annex goes with: its folders and files, and its lines in files of the core.
type without struct {
	gone  []string
	lines map[string]string // by file, an expression for what is taken out of it
}

// ofController is a controller with its entry in the list of annexes.
func ofController(kinds, folder string, more ...string) without {
	entry, imported := `^\t\{kinds: "`+kinds+`".*?^\t\}\},\n`, `^\t"toban.dev/`+folder+`"\n`
	return without{gone: append(more, folder), lines: map[string]string{
		"internal/cli/process/annexes.go": `(?sm)` + entry + `|` + imported,
	}}
}

// ofAgents is a package of agents with its line in the list of what they do without.
func (w without) ofAgents(folder string) without {
	line, imported := `^\t[A-Z]\w*: +`+folder+`\..*\n`, `^\t"toban.dev/internal/agent/`+folder+`"\n`
	lines := map[string]string{"internal/cli/process/agentannexes.go": `(?m)` + line + `|` + imported}
	maps.Copy(lines, w.lines)
	return without{gone: append(w.gone, "internal/agent/"+folder), lines: lines}
}

// ofVerb is a folder of verbs with its lines in the list of all.
func ofVerb(folder string, more ...string) without {
	verbs, imported := `^\t+`+folder+`\..*\n`, `^\t"toban.dev/internal/cli/`+folder+`"\n`
	return without{gone: append(more, "internal/cli/"+folder), lines: map[string]string{
		"internal/cli/plugin.go": `(?m)` + verbs + `|` + imported,
	}}
}

// withWork takes what an annex does in Pods, too: its folders, and its file of verbs with its line in the list of all.
func (w without) withWork(name string, folders ...string) without {
	w.gone = append(append(w.gone, folders...), "internal/cli/process/annex"+strings.ToLower(name)+".go")
	if w.lines == nil {
		w.lines = map[string]string{}
	}
	w.lines["internal/cli/process/annexwork.go"] = `(?m)^\t` + name + `,\n`
	return w
}

// annexes are what the core can do without (docs/packages.md, "Core and annexes").
var annexes = map[string]without{
	"DatabaseRestore": ofController("DatabaseRestores", "internal/operator/order/databaserestore").
		withWork("tableRestore", "internal/work/tablerestore"),
	"FaultDrill": ofController("FaultDrills", "internal/operator/order/faultdrill").
		withWork("faultDrill", "internal/work/drill").ofAgents("fault"),
	"blue/green": without{}.withWork("blueGreen", "internal/work/bluegreen"),
	"major upgrades": without{}.withWork("majorUpgrade", "internal/work/former", "internal/work/major",
		"internal/work/upgrade"),
	"second store": without{}.withWork("secondStore", "internal/archive/second", "internal/work/second"),
	"scrub":        without{}.withWork("archiveScrub", "internal/archive/scrub", "internal/work/scrub"),
	"PostgreSQL":   ofController("PostgreSQLs", "internal/operator/postgresql"),
	"MyApp":        ofController("MyApps", "internal/operator/myapp", "internal/operator/desired/myapp"),
	"console": {
		gone:  []string{"internal/cli/console", "internal/cli/console.go", "internal/cli/consoleverbs.go"},
		lines: map[string]string{"internal/cli/plugin.go": `(?m)^.*Console\(version\).*\n`},
	},
	"plan":       ofVerb("plan", "internal/operator/plan"),
	"drill":      ofVerb("drill"),
	"psql":       ofVerb("psql"),
	"report":     ofVerb("report"),
	"exporter":   without{}.ofAgents("exporter"),
	"simulation": {gone: []string{"internal/ha/simulation"}},
}

// has says whether a package goes with the annex.
func (w without) has(p pkg) bool {
	return slices.ContainsFunc(w.gone, func(gone string) bool {
		return p.Path == gone || strings.HasPrefix(p.Path, gone+"/")
	})
}

// isForTests says that a package is there for tests alone: it is in no program.
func (p pkg) isForTests() bool { return strings.HasSuffix(p.Path, "test") }

// core prints the lines of code of each annex, and how many are left in internal without them.
func (h house) core(out io.Writer) error {
	left, tests := h.sum().internal, 0
	for _, name := range slices.Sorted(maps.Keys(annexes)) {
		lines := 0
		for _, p := range h.Packages {
			if annexes[name].has(p) {
				lines += p.Lines
			}
		}
		left -= lines
		fmt.Fprintf(out, "%-16s %6d  %s\n", name, lines, strings.Join(annexes[name].gone, " "))
	}
	for _, p := range h.Packages {
		if p.isForTests() {
			tests += p.Lines
		}
	}
	fmt.Fprintf(out, "%-16s %6d\n%-16s %6d\n", "for tests alone", tests, "core", left-tests)
	return nil
}
