package main

import (
	"encoding/json"
	"errors"
	"go/build/constraint"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil { // all is found from the repository's folder
		panic(err)
	}
	os.Exit(m.Run())
}

func present(t *testing.T) []test {
	t.Helper()
	all, err := findTests(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("only %d tests are found", len(all))
	}
	return all
}

// A test that nobody runs proves nothing, and looks as if it did.
func TestEachTestIsRunBySomebody(t *testing.T) {
	all := present(t)
	for _, f := range all {
		switch _, ok := ringOf(f); {
		case f.benchmark() && !slices.Contains(benchmarks(all), "./"+f.folder):
			t.Errorf("%s is in a module whose benchmarks nobody runs", f)
		case !ok:
			t.Errorf("no ring of hack/suite/rings.go has %s", f)
		}
	}
	pieces := soak(all)
	for _, f := range all {
		named := slices.ContainsFunc(pieces, func(p piece) bool { return p.name == f.String() })
		if (f.long() || f.fuzz()) && !named {
			t.Errorf("make soak does not run %s", f)
		}
	}
}

// A package that two rings have is tested twice, and what waits for it waits longer.
func TestAPackageIsOfOneRing(t *testing.T) {
	all := present(t)
	of := map[string]string{}
	for _, r := range rings {
		for _, folder := range r.folders(all) {
			what := strings.Join([]string{r.moduleFolder(), r.tags, folder}, " ")
			if other, is := of[what]; is {
				t.Errorf("%s is in the rings %s and %s", folder, other, r.name)
			}
			of[what] = r.name
		}
	}
}

// What is found by reading files is what go knows.
func TestTheTestsAreThoseThatGoKnows(t *testing.T) {
	all := present(t)
	for _, module := range []string{".", "localkube"} {
		// the modules of tools and components have no tests of ours
		out, err := exec.Command("go", "-C", module, "list", "-tags", "e2e,cluster",
			"-json=Dir,TestGoFiles,XTestGoFiles", "./...").Output()
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Dir                       string
				TestGoFiles, XTestGoFiles []string
			}
			if err := packages.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			folder := strings.TrimPrefix(strings.TrimPrefix(p.Dir, path.Join(root, module)), "/")
			found := slices.ContainsFunc(all, func(f test) bool { return f.module == module && f.folder == folder })
			if wanted := declares(t, p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles)); found != wanted {
				t.Errorf("%s: that it has tests is found: %t; that is so: %t", p.Dir, found, wanted)
			}
		}
	}
}

// declares says whether one of the files has a function that takes what only tests get.
func declares(t *testing.T, folder string, files []string) bool {
	t.Helper()
	return slices.ContainsFunc(files, func(f string) bool {
		text, err := os.ReadFile(path.Join(folder, f))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^func [TFBE]\w+\(((t|f|b|_) \*testing\.[TFB])?\) \{`).Match(text)
	})
}

// Each ring is run by a script that make check, make test or make soak calls, and nothing is run past the rings.
func TestEachRingIsRunByAScript(t *testing.T) {
	const ownCluster = "hack/owncluster.sh"
	callers := map[string]string{
		pure: "hack/check.sh", "localkube": "hack/check.sh", "servers": "hack/test.sh", "others": "hack/test.sh",
		"stories": "hack/e2e.sh", "drill": "hack/e2e.sh", "lifecycle": ownCluster, "installs": ownCluster,
	}
	for _, r := range rings {
		call := "go run ./hack/suite ring " + r.name
		if callers[r.name] == ownCluster {
			call = `go run ./hack/suite ring "$@"`
		}
		if !strings.Contains(read(t, callers[r.name]), call) {
			t.Errorf("%q does not run the ring %s", callers[r.name], r.name)
		}
	}
	for file, calls := range map[string][]string{
		"hack/test.sh": {"hack/check.sh", "hack/e2e.sh\n", `suite long "$share" local`, `suite long "$share" cluster`},
		"Makefile":     {"@hack/check.sh", "@hack/test.sh", `./hack/suite soak "$(SHARE)" "$(PIECES)"`},
	} {
		for _, call := range calls {
			if !strings.Contains(read(t, file), call) {
				t.Errorf("%s does not call %s", file, call)
			}
		}
	}
	var own []string
	for _, p := range soak(present(t)) {
		if p.story == nil && strings.HasPrefix(p.command[0], "hack/") {
			if _, err := os.Stat(p.command[0]); err != nil {
				t.Error(err)
			}
			if p.command[0] == ownCluster {
				own = append(own, p.command[1:]...)
			}
		}
	}
	for name, caller := range callers {
		if caller == ownCluster && !slices.Contains(own, name) {
			t.Errorf("no piece of make soak runs the ring %s", name)
		}
	}
}

// The stories that an operator of one namespace runs are there, and so are those of a ring that are run by their names:
// gotest says only of a run of nothing at all that it is none.
func TestStoriesThatAreNamedAreThere(t *testing.T) {
	all := present(t)
	for _, name := range slices.Concat(namespaced, []string{"TestTheHelmChart", "TestTheBundleForOLM"}) {
		if !slices.ContainsFunc(all, func(t test) bool { return t.name == name }) {
			t.Errorf("there is no story %s", name)
		}
	}
	for _, one := range all {
		if one.folder == "test/install" && !slices.ContainsFunc(soak(all), func(p piece) bool {
			return slices.Contains(p.command, "^"+one.name+"$")
		}) {
			t.Errorf("no piece of make soak runs %s", one)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The pieces of a share take about as long as those of any other, and no longer than there is time for.
func TestSharesAreAsLongAsThereIsTimeFor(t *testing.T) {
	all := present(t)
	last, err := readRecord()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		what   string
		pieces []piece
		shares int
		most   time.Duration
	}{{"make test", stories(all), testShares, 20 * time.Minute}, {"make soak", soak(all), soakShares, 2 * time.Hour}} {
		var seen int
		for i, part := range shareOut(of.pieces, of.shares, last) {
			seen += len(part)
			if took := last.costs(part); took > of.most {
				t.Errorf("%s SHARE=%s takes %s; there are %s", of.what, share{i + 1, of.shares}, took, of.most)
			}
		}
		if seen != len(of.pieces) {
			t.Errorf("%s: %d of %d pieces are in a share", of.what, seen, len(of.pieces))
		}
	}
}

// Whatever ran before: so many landings later all have run, if each records what it ran.
func TestAllHaveRunAfterAsManyLandingsAsThereAreShares(t *testing.T) {
	var pieces []piece
	for i := range 70 {
		name := string(rune('A'+i%26)) + string(rune('a'+i/26))
		pieces = append(pieces, piece{name: name, beside: 3, guess: 20 + i*7%200})
	}
	last := record{"Aa": {30, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), "abc"}}
	seen := map[string]bool{}
	for landing := range testShares {
		chosen := oldest(pieces, testShares, last)
		for _, p := range shareOut(pieces, testShares, last)[chosen.number-1] {
			seen[p.name] = true
			last.note(p.name, ran{p.guess, time.Date(2026, 11, 2+landing, 0, 0, 0, 0, time.UTC), "def"})
		}
	}
	if len(seen) != len(pieces) {
		t.Errorf("%d of %d ran in %d landings", len(seen), len(pieces), testShares)
	}
}

// Where nobody records what ran, the shares take turns by the number of commits.
func TestTheNextShareIsAnother(t *testing.T) {
	var pieces []piece
	for _, name := range []string{"a", "b", "c"} {
		pieces = append(pieces, piece{name: name, beside: 1, guess: 1})
	}
	for commits, want := range []share{{1, 3}, {2, 3}, {3, 3}, {1, 3}} {
		if got := next(pieces, 3, record{}, commits); got != want {
			t.Errorf("after %d commits the share is %s, want %s", commits, got, want)
		}
	}
}

func TestFindTests(t *testing.T) {
	files := fstest.MapFS{
		"go.mod": {},
		"a/a_test.go": {Data: []byte("package a\n\nfunc TestA(t *testing.T) {\n}\nfunc Testing() {}\n" +
			"func TestMain(m) {}\n")},
		"a/testdata/b_test.go": {Data: []byte("func TestB(t *testing.T) {")},
		"m/go.mod":             {},
		"m/m_test.go":          {Data: []byte("//go:build cluster\n\nfunc FuzzM(f *testing.F) {")},
		"m/x/x_test.go":        {Data: []byte("func Example() {")},
	}
	all, err := findTests(files)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range all {
		names = append(names, f.String())
	}
	if want := []string{"a TestA", "m FuzzM", "m/x Example"}; !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	if m := all[1]; m.compiled("") || !m.compiled("cluster") {
		t.Error("the build constraint of a file is not known")
	}
}

func TestTheRecordIsReadAsItIsWritten(t *testing.T) {
	all := present(t)
	story := stories(all)[0]
	r := record{story.name: {120, time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC), "abc"}, "gone": {1, time.Now(), "x"}}
	again, err := parseRecord(r.text(all))
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != 1 || again[story.name] != r[story.name] {
		t.Errorf("read %v, want %v without what is gone", again, r)
	}
	again.note(story.name, ran{130, again[story.name].on.AddDate(0, 0, 1), "def"})
	if got := again[story.name]; got.seconds != 120 || got.commit != "def" {
		t.Errorf("a time that is about the same moved: %v", got)
	}
	if again.note(story.name, ran{5, time.Time{}, "old"}); again[story.name].commit != "def" {
		t.Error("an older run replaced a younger one")
	}
	for _, broken := range []string{"", recordBegins + "half a line\n"} {
		if _, err := parseRecord(broken); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
}

func TestWhatPassedIsRead(t *testing.T) {
	took, err := passed("toban.dev/test/e2e TestLongSorting 12.2\ntoban.dev TestX 1\n", ran{commit: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if got := took["test/e2e TestLongSorting"]; got.seconds != 13 || got.commit != "abc" || len(took) != 2 {
		t.Errorf("read %v", took)
	}
}

func TestShares(t *testing.T) {
	for _, wrong := range []string{"", "2", "0/6", "7/6", "a/b", "2/"} {
		if _, err := parseShare(wrong); err == nil {
			t.Errorf("%q was taken for a share", wrong)
		}
	}
	if s, err := parseShare("2/6"); err != nil || s != (share{2, 6}) {
		t.Errorf("2/6 is %v, %v", s, err)
	}
}

func TestPiecesAreFoundByTheirNames(t *testing.T) {
	all := soak(present(t))
	for names, want := range map[string]int{
		"": len(all), "^race$": 1, "^(race|elections-2)$": 2, "^elections": 4, "^nothing$": 0, "(": 0,
	} {
		pieces, err := called(all, names)
		if len(pieces) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d pieces, %v", names, len(pieces), err)
		}
	}
}

func TestTheCommandOfARing(t *testing.T) {
	tagged := &constraint.TagExpr{Tag: "e2e"}
	all := []test{
		{module: ".", folder: "test/e2e", name: "TestScale", when: tagged},
		{module: ".", folder: "test/e2e", name: "TestLongScale", when: tagged},
		{module: ".", folder: "internal/a", name: "TestA"},
	}
	stories, _ := ringNamed("stories")
	plain, _ := ringNamed(pure)
	for _, c := range []struct {
		r      ring
		chosen []test
		more   []string
		want   string
	}{
		{stories, nil, nil, "-skip=^TestLong[A-Z] ./test/e2e"},
		{stories, nil, []string{"-run", "TestScale"}, "-parallel=4 ./test/e2e -run TestScale"},
		{stories, all[1:2], nil, "-run=^(TestLongScale)$ ./test/e2e"},
		{plain, nil, []string{"-count=1"}, "-skip=^TestLong[A-Z] ./internal/a -count=1"},
	} {
		if got := strings.Join(c.r.command(all, c.chosen, c.more), " "); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s; want it to end with %s", c.r.name, got, c.want)
		}
	}
}

// The parts of a ring are all of its tests but the long ones, each once.
func TestPartsOfARing(t *testing.T) {
	all := present(t)
	for _, name := range []string{"servers", "others", "stories"} {
		r, _ := ringNamed(name)
		want := 0
		for _, test := range all {
			if first, is := ringOf(test); is && first.name == name && !test.long() {
				want++
			}
		}
		seen := map[string]int{}
		for number := range 3 {
			for _, test := range r.part(all, share{number + 1, 3}) {
				seen[test.String()]++
			}
		}
		if len(seen) != want || want == 0 {
			t.Errorf("%s has %d tests, its parts %d", name, want, len(seen))
		}
		for test, times := range seen {
			if times != 1 {
				t.Errorf("%s is in %d parts", test, times)
			}
		}
		if part := r.part(all, share{1, 1}); part != nil {
			t.Errorf("%s: all of it are %d chosen tests", name, len(part))
		}
	}
}
