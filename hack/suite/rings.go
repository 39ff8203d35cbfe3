package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// long is how the names of long stories begin. make test leaves them out, but for a share of them.
const long = "^TestLong[A-Z]"

// A ring is tests that are run by one call of go test, and what it takes to run them.
type ring struct {
	name string
	// module is the folder of the module that has them, "." for the first.
	module string
	// tags are the build tags with which they are compiled.
	tags string
	// packages are folders in that module; those that end with /... have all below. Without any, it has all packages
	// that no other ring without tags has.
	packages []string
	// only are the names of the tests, as a regular expression; all if it is empty.
	only string
	// cluster says that they need the cluster of make up.
	cluster bool
	// beside is how many of its tests run at the same time on two processors, on average: what one of them costs is its
	// own time divided by that.
	beside float64
	// flags are more of go test, and slow those that come last on a slow machine.
	flags, slow []string
}

// pure is the ring of all that needs nothing but Go.
const pure = "pure"

// rings are all of them. A package is of the first that has it.
var rings = []ring{
	// The two longest run side by side, each with two tests at a time: more of them slow each other so much that
	// servers are late for their deadlines. On a machine that is busy with other work all take twice as long: the
	// timeout is for what hangs.
	{
		name: "servers", packages: []string{"test/local", "test/api/..."}, beside: 2,
		flags: []string{"-count=1", "-timeout=50m", "-p=2"},
	},
	// These mostly wait: three of them at a time.
	{
		name: "others", packages: []string{"test/local/...", "test/mixed/...", "test/stores/..."}, beside: 2,
		flags: []string{"-count=1", "-timeout=50m", "-p=3"},
	},
	{
		name: "stories", tags: "e2e", packages: []string{"test/e2e/..."}, cluster: true, beside: 1.4,
		flags: []string{"-count=1", "-timeout=120m", "-parallel=4"}, slow: []string{"-parallel=2"},
	},
	// The drill wants the cluster for itself.
	{
		name: "drill", tags: "e2e", packages: []string{"test/drill"}, only: "^TestDrill$", cluster: true, beside: 1,
		flags: []string{"-count=1", "-timeout=30m"},
	},
	// The simulated elections take about a minute on two cores.
	{name: pure, beside: 2, flags: []string{"-timeout=30m"}},
	{name: "localkube", module: "localkube", packages: []string{"..."}, beside: 2},
	// It makes a cluster of its own. It is a piece of make soak.
	{
		name: "lifecycle", module: "localkube", tags: "cluster", packages: []string{""}, beside: 1,
		only: "^TestClusterLifecycle$", flags: []string{"-count=1", "-timeout=30m"},
	},
	// Each makes a cluster of its own, too.
	{
		name: "installs", tags: "cluster", packages: []string{"test/install"}, beside: 1,
		flags: []string{"-count=1", "-timeout=60m"},
	},
}

func ringNamed(name string) (ring, bool) {
	i := slices.IndexFunc(rings, func(r ring) bool { return r.name == name })
	if i < 0 {
		return ring{}, false
	}
	return rings[i], true
}

// names says whether its list has a folder.
func (r ring) names(folder string) bool {
	return slices.ContainsFunc(r.packages, func(p string) bool {
		below, all := strings.CutSuffix(p, "...")
		return folder == p || all && strings.HasPrefix(folder+"/", below)
	})
}

// has says whether a test is of this ring, be it a long one or not.
func (r ring) has(t test) bool {
	if r.moduleFolder() != t.module || !t.compiled(r.tags) || r.only != "" && !matches(r.only, t.name) {
		return false
	}
	if r.name != pure {
		return r.names(t.folder)
	}
	return !slices.ContainsFunc(rings, func(other ring) bool {
		return other.moduleFolder() == t.module && other.tags == "" && other.names(t.folder)
	})
}

func (r ring) moduleFolder() string { return path.Clean(r.module) }

// ringOf is the first ring that has a test.
func ringOf(t test) (ring, bool) {
	i := slices.IndexFunc(rings, func(r ring) bool { return r.has(t) })
	if i < 0 {
		return ring{}, false
	}
	return rings[i], true
}

func matches(pattern, name string) bool { return regexp.MustCompile(pattern).MatchString(name) }

func (t test) long() bool { return matches(long, t.name) }

// command is what runs those of its tests that are chosen, all but the long ones if none is. More flags of go test
// come last; among them -run chooses too.
func (r ring) command(all []test, chosen []test, more []string) []string {
	args := []string{"go", "run", "./hack/gotest"}
	if r.moduleFolder() != "." {
		args = append(args, "-C", r.module)
	}
	if r.tags != "" {
		args = append(args, "-tags="+r.tags)
	}
	args = append(args, r.flags...)
	of := chosen
	switch {
	case len(chosen) > 0:
		args = append(args, "-run="+anyOf(chosen))
	case !slices.ContainsFunc(more, func(flag string) bool { return strings.HasPrefix(flag, "-run") }):
		if r.only != "" {
			args = append(args, "-run="+r.only)
		}
		args = append(args, "-skip="+long)
	}
	if len(of) == 0 {
		of = all
	}
	return slices.Concat(args, r.folders(of), more)
}

// part are the tests of a part of a ring, without the long ones; none where that is all of it. Neighbours in a file,
// which cost about the same, are of different parts.
func (r ring) part(all []test, of share) (chosen []test) {
	if of.of == 1 {
		return nil
	}
	n := 0
	for _, t := range all {
		first, is := ringOf(t)
		if !is || first.name != r.name || t.long() {
			continue
		}
		if n%of.of == of.number-1 {
			chosen = append(chosen, t)
		}
		n++
	}
	return chosen
}

// folders are those of some tests that are of no ring before it, as go test wants them.
func (r ring) folders(of []test) []string {
	var folders []string
	for _, t := range of {
		if first, is := ringOf(t); is && first.name == r.name {
			folders = append(folders, "./"+t.folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// anyOf matches the names of these tests and no others.
func anyOf(tests []test) string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}
