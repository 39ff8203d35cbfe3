package main

import (
	"fmt"
	"slices"
	"strings"
)

// A piece is what is run and recorded as one: a long story, or a command of make soak.
type piece struct {
	name string
	// story is the long story that it is; else command is what it runs.
	story   *test
	command []string
	// cluster says whether it needs the cluster of make up, or that there is none; unimportant if it is empty.
	cluster string
	// beside is how many of its kind run at the same time: ring.beside.
	beside float64
	// guess is how long it takes in seconds, where no run is recorded.
	guess int
}

// What a piece needs of the cluster.
const (
	up   = "up"
	down = "down"
)

// stories are the long stories as pieces.
func stories(all []test) (pieces []piece) {
	for _, t := range longOnes(all) {
		r, ok := ringOf(t)
		if !ok {
			continue // TestEachTestIsRunBySomebody complains
		}
		p := piece{name: t.String(), story: &t, beside: r.beside, guess: 90}
		if r.cluster {
			p.cluster = up
		}
		pieces = append(pieces, p)
	}
	return pieces
}

// soak are all pieces of make soak: what takes too long for make test.
func soak(all []test) []piece {
	pieces := []piece{
		script("race", 900, "hack/race.sh"),
		script("virtual", 1800, gotest("./test/virtual -first 1000 -schedules 4000")),
		script("histories", 600, gotest("-run ^TestHistories$ ./internal/archive/keep -schedules 10000")),
		script("mixed", 1800, gotest("./test/mixed -rounds 9")),
		script("bring-18", 300, "env TOBAN_TEST_MAJOR=18 "+gotest("./test/local/bring")),
		script("local-19", 1500, "env TOBAN_TEST_MAJOR=19 "+gotest("./test/local ./test/local/upgrade")),
		script("benchmarks", 300, "go test -run ^$ -bench . -benchtime 1x "+strings.Join(benchmarks(all), " ")),
		script("reproducible", 900, "go run ./hack/release twice -whole"),
		script("release", 900, "go run ./hack/release twice -release"),
		needing(down, script("lifecycle", 600, "hack/owncluster.sh lifecycle")),
		needing(down, script("helm", 600, "hack/owncluster.sh installs -run ^TestTheHelmChart$")),
		needing(down, script("bundle", 600, "hack/owncluster.sh installs -run ^TestTheBundleForOLM$")),
		needing(up, script("namespaced", 1200, "env TOBAN_E2E_NAMESPACED=yes hack/e2e.sh -parallel 1 -run ^("+
			strings.Join(namespaced, "|")+")$")),
	}
	for quarter := range 4 { // so that a machine which is slow, or needed, comes to the end of some of them
		pieces = append(pieces, script(fmt.Sprintf("elections-%d", quarter+1), 900, gotest(fmt.Sprintf(
			"./internal/ha/simulation -first %d -schedules 100000", quarter*100_000+1))))
	}
	for _, t := range all {
		if t.fuzz() {
			pieces = append(pieces, script(t.String(), 320,
				fmt.Sprintf("go test -C ./%s -run ^$ -fuzz ^%s$ -fuzztime 5m ./%s", t.module, t.name, t.folder)))
		}
	}
	return slices.Concat(pieces, stories(all))
}

// namespaced are stories in which the namespace has an operator of its own (config/install-namespaced.yaml), with no
// right elsewhere: each kind, and each thing that an operator needs a right for. One at a time. Stories of what is left
// of a SampleDB or a PostgreSQL that is deleted are not among them: such an operator can't see whether the kind goes
// too, so it keeps the data (TestNamespacedInstall).
var namespaced = []string{
	"TestAMajorUpgrade", "TestADatabaseIsStoppedAndStarted", "TestLongALostVolume", "TestAnApplicationWithItsDatabase",
	"TestBackupOnAVolumeOfItsOwn", "TestChanges", "TestLongBlueGreenCancelled", "TestDailyUse", "TestOneTableComesBack",
	"TestReaders", "TestLongScale", "TestSwitchoverAndRotation", "TestLongVolumesGrowByThemselves",
}

func script(name string, guess int, command string) piece {
	return piece{name: name, command: strings.Fields(command), beside: 1, guess: guess}
}

func needing(cluster string, p piece) piece {
	p.cluster = cluster
	return p
}

func gotest(args string) string { return "go run ./hack/gotest -count=1 -timeout 2h " + args }

func (t test) fuzz() bool { return strings.HasPrefix(t.name, "Fuzz") }

func (t test) benchmark() bool { return strings.HasPrefix(t.name, "Benchmark") }

// benchmarks are the packages of the first module that have some.
func benchmarks(all []test) (packages []string) {
	for _, t := range all {
		if t.benchmark() && t.module == "." {
			packages = append(packages, "./"+t.folder)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}
