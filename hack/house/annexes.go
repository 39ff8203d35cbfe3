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
	stays []string          // folders below these that do not go
	lines map[string]string // by file, an expression for what is taken out of it
	above []string          // annexes that build on it, which go with it
}

// ofController is a controller with its entry in the list of annexes.
func ofController(kinds, folder string, more ...string) without {
	entry, imported := `^\t\{kinds: "`+kinds+`".*?^\t\}\},\n`, `^\t"toban.dev/`+folder+`"\n`
	return without{gone: append(more, folder), lines: map[string]string{
		"internal/cli/process/annexes.go": `(?sm)` + entry + `|` + imported,
	}}
}

// agentAnnexes has the lines of what agents do without, and other Pods.
const agentAnnexes = "internal/cli/process/agentannexes.go"

// ofAgents is a package of agents with its line in the list of what they do without.
func (w without) ofAgents(folder string) without {
	line, imported := `^\t[A-Z]\w*: +`+folder+`\..*\n`, `^\t"toban.dev/internal/agent/`+folder+`"\n`
	lines := map[string]string{agentAnnexes: `(?m)` + line + `|` + imported}
	if own := w.lines[agentAnnexes]; own != "" {
		lines[agentAnnexes] += `|` + own
	}
	for file, own := range w.lines {
		if file != agentAnnexes {
			lines[file] = own
		}
	}
	return without{gone: append(w.gone, "internal/agent/"+folder), lines: lines}
}

// ofVerb is a folder of verbs with its lines in the list of all, and in those of what other verbs are given: a line of
// such a list ends with the function. What it is given itself goes with it.
func ofVerb(folder string, more ...string) without {
	verbs, imported := `^\t+(?:.+: +)?`+folder+`\..*\n`, `^\t"toban.dev/internal/cli/`+folder+`"\n`
	given := `^var \w+ = ` + folder + `\.\w+\{\n(?:\t.*\n)*\}\n`
	return without{gone: append(more, "internal/cli/"+folder), lines: map[string]string{
		"internal/cli/plugin.go": `(?m)` + verbs + `|` + imported + `|` + given,
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

// ofSampleDB is a folder of topics of a SampleDB's work with its lines in the list of annexes there.
func ofSampleDB(folder string, more ...string) without {
	entry, imported := `^\t`+folder+`\..*\n`, `^\t"toban.dev/internal/operator/sampledb/`+folder+`"\n`
	return without{gone: append(more, "internal/operator/sampledb/"+folder), lines: map[string]string{
		"internal/operator/sampledb/annexes.go": `(?m)` + entry + `|` + imported,
	}}
}

// under is the annex with the names of those that build on it.
func (w without) under(names ...string) without {
	w.above = names
	return w
}

// all is what the annex goes with, and what goes with those that build on it.
func (w without) all() without {
	all := without{gone: slices.Clone(w.gone), stays: slices.Clone(w.stays), lines: maps.Clone(w.lines)}
	for _, name := range w.above {
		other := annexes[name].all()
		all.gone = append(all.gone, other.gone...)
		for file, lines := range other.lines {
			all.lines[file] = strings.TrimPrefix(all.lines[file]+"|"+lines, "|")
		}
	}
	return all
}

// annexes are what the core can do without (docs/packages.md, "Core and annexes").
var annexes = map[string]without{
	"DatabaseRestore": ofController("DatabaseRestores", "internal/operator/order/databaserestore").
		withWork("tableRestore", "internal/work/tablerestore"),
	"FaultDrill": ofController("FaultDrills", "internal/operator/order/faultdrill").
		withWork("faultDrill", "internal/work/drill").ofAgents("fault"),
	"blue/green": ofSampleDB("bluegreen", "internal/change/bluegreen", "internal/operator/desired/sides").
		withWork("blueGreen", "internal/work/bluegreen").under("plan", "upgrade"),
	"major upgrades": ofSampleDB("major", "internal/change/major", "internal/operator/desired/upgrades").
		withWork("majorUpgrade", "internal/work/former", "internal/work/major", "internal/work/upgrade").
		under("blue/green", "plan", "upgrade"),
	"second store": without{}.withWork("secondStore", "internal/archive/second", "internal/work/second"),
	"scrub":        without{}.withWork("archiveScrub", "internal/archive/scrub", "internal/work/scrub"),
	"PostgreSQL": ofController("PostgreSQLs", "internal/operator/postgresql").
		withWork("passwords", "internal/work/sendpasswords"),
	"MyApp": ofController("MyApps", "internal/operator/myapp", "internal/operator/desired/myapp"),
	"console": {
		gone: []string{"internal/cli/console", "internal/cli/console.go", "internal/cli/consoleverbs.go"},
		lines: map[string]string{"internal/cli/plugin.go": `(?m)^.*Console\(version\).*\n|^.*/cli/console"\n|` +
			`^var called = consoleVerbs\{\n(?:\t.*\n)*\}\n`},
	},
	"undelete": without{
		gone: []string{"internal/archive/book/find.go", "internal/cli/restore/undelete.go",
			"internal/cli/restore/undeletestore.go", "internal/cli/restore/oneoffpod.go"},
		lines: map[string]string{"internal/cli/plugin.go": `(?m)^\t+restore\.Undelete\(\),\n`},
	}.withWork("undelete", "internal/work/find"),
	"plan":     ofVerb("plan", "internal/operator/plan"),
	"drill":    ofVerb("drill"),
	"psql":     ofVerb("psql"),
	"report":   ofVerb("report"),
	"status":   ofVerb("status"),
	"logs":     ofVerb("logs"),
	"servers":  ofVerb("servers"),
	"backup":   ofVerb("backup"),
	"restore":  ofVerb("restore"),
	"upgrade":  ofVerb("upgrade"),
	"complete": ofVerb("complete"),
	// All verbs for people, and what they have in common.
	"command": {
		gone:  []string{"internal/cli", "cmd/kubectl-toban"},
		stays: []string{"internal/cli/process", "internal/cli/root"},
		lines: map[string]string{"cmd/toban/main.go": `(?m)^.*cli\.Verbs\(version\).*\n|^\t"toban.dev/internal/cli"\n`},
	},
	"exporter": without{}.ofAgents("exporter"),
	"poolers": without{
		gone:  []string{"internal/front/pooler", "internal/cli/process/pooler.go"},
		lines: map[string]string{agentAnnexes: `^\t\tPooler\(\),\n`},
	}.ofAgents("poolers"),
	"simulation": {gone: []string{"internal/ha/simulation"}},
}

// has says whether a file goes with the annex.
func (w without) has(path string) bool { return within(w.stays, path) == 0 && within(w.gone, path) > 0 }

// within is how many letters the name of the innermost of some folders has that a path is in, 0 for none.
func within(folders []string, path string) (letters int) {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			letters = max(letters, len(f))
		}
	}
	return letters
}

// annexOf is the annex that a file belongs to, "" for the core. Where one is within another, it is the inner one.
func annexOf(file string) (name string) {
	most := 0
	for n, w := range annexes {
		if letters := within(w.gone, file); w.has(file) && letters > most {
			name, most = n, letters
		}
	}
	return name
}

// isForTests says that a package is there for tests alone: it is in no program.
func (p pkg) isForTests() bool { return strings.HasSuffix(p.Path, "test") }

// core prints the lines of code of each annex, and how many are left in internal without them.
func (h house) core(out io.Writer) error {
	left, tests, lines := 0, 0, map[string]int{}
	for _, p := range h.Packages {
		for file, n := range p.files {
			switch name := annexOf(file); {
			case !strings.HasPrefix(file, "internal/"):
			case p.isForTests():
				tests += n
			case name != "":
				lines[name] += n
			default:
				left += n
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(annexes)) {
		fmt.Fprintf(out, "%-16s %6d  %s\n", name, lines[name], strings.Join(annexes[name].gone, " "))
	}
	fmt.Fprintf(out, "%-16s %6d\n%-16s %6d\n", "for tests alone", tests, "core", left)
	return nil
}
