package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// said is what go test -json says of a package with one test.
func said(action string, output ...string) string {
	var text strings.Builder
	for _, line := range output {
		text.WriteString(`{"Action":"output","Package":"p","Test":"TestX","Output":"` + line + `\n"}` + "\n")
	}
	return text.String() + `{"Action":"` + action + `","Package":"p","Test":"TestX"}` + "\n" +
		`{"Action":"output","Package":"p","Output":"PASS\n"}` + "\n" +
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}` + "\n" +
		`{"Action":"pass","Package":"p"}` + "\n"
}

func TestSkips(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"TestY"}` + "\n"
	for name, c := range map[string]struct {
		events  string
		verbose bool
		prints  string
		problem string
	}{
		"a test that passes says nothing": {said("pass", "words"), false, "ok  \tp\t0.1s\n", ""},
		"unless it is asked for":          {said("pass", "words"), true, "words\nPASS\nok  \tp\t0.1s\n", ""},
		"one that fails does":             {said("fail", "words"), false, "words\nok  \tp\t0.1s\n", ""},
		"a declared skip": {
			pass + said("skip", "x_test.go:1: no moon tonight"), false,
			"ok  \tp\t0.1s\n1 tests were skipped, as hack/gotest/skips.txt declares\n", "",
		},
		"another skip": {
			pass + said("skip", "x_test.go:1: no sun"), false, "ok  \tp\t0.1s\n",
			"1 tests were skipped, which hack/gotest/skips.txt does not declare:\np TestX\nx_test.go:1: no sun\n",
		},
		"a skip without a word": {pass + said("skip"), false, "ok  \tp\t0.1s\n",
			"1 tests were skipped, which hack/gotest/skips.txt does not declare:\np TestX\n"},
		"no test at all": {`{"Action":"skip","Package":"p"}` + "\n", false, "", "nothing was tested"},
		"a test that did not come to its end": {
			`{"Action":"output","Package":"p","Test":"TestX","Output":"panic\n"}` + "\n" +
				`{"Action":"fail","Package":"p"}` + "\n" + pass, false, "panic\n", ""},
		"what does not compile": {
			`{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}` + "\n" + pass, false,
			"undefined: x\n", ""},
		"what is no event": {"go: no such folder\n" + pass, false, "go: no such folder\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out, []skip{{"p", "no moon"}, {"other", "no sun"}}, c.verbose)
			if err := r.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			problem := ""
			if err := r.verdict(); err != nil {
				problem = err.Error()
			}
			if out.String() != c.prints || problem != c.problem {
				t.Errorf("it prints %q, and says %q", out.String(), problem)
			}
		})
	}
}

func TestTheSlowestAreTold(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, nil, false)
	err := r.read(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestQuick","Elapsed":1.5}
{"Action":"pass","Package":"p","Test":"TestSlow","Elapsed":30.2}
{"Action":"fail","Package":"p","Test":"TestSlower/part","Elapsed":90}
{"Action":"fail","Package":"p","Test":"TestSlower","Elapsed":91}
{"Action":"fail","Package":"p","Elapsed":200}
`))
	if err != nil {
		t.Fatal(err)
	}
	r.tellSlowest()
	want := "passed after 30 s: p TestSlow\n    91 s  p TestSlower\n    30 s  p TestSlow\n"
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}

// What hack/suite reads of the tests that passed.
func TestWhatPassedIsWritten(t *testing.T) {
	r := newReport(&strings.Builder{}, nil, false)
	err := r.read(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestA/part","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":2}
{"Action":"pass","Package":"p","Elapsed":4}
`))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "passed")
	if err := r.writePassed(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "p TestA 1.5\n" {
		t.Errorf("it writes %q, %v", text, err)
	}
	if err := r.writePassed(""); err != nil {
		t.Error(err)
	}
}

// Who sees only the last lines of a long run sees what failed, and why.
func TestWhatFailedIsToldAtTheEnd(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, nil, false)
	long := strings.Repeat("x", 400)
	err := r.read(strings.NewReader(said("fail", "=== RUN TestX", "    x_test.go:7: not within 6 min: "+long,
		"        a log of many lines", "    y_test.go:9: and this",
		"    y_test.go:10: what is left: nothing") + said("pass", "    x_test.go:8: nothing")))
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	r.tellFailed()
	want := "1 tests failed:\np TestX\n    x_test.go:7: not within 6 min: " + long[:300-len("not within 6 min: ")] +
		"\n    y_test.go:9: and this\n"
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}

func TestAFolderStaysInFront(t *testing.T) {
	got := testArgs([]string{"-C", "localkube", "-run", "X", "./..."})
	want := []string{"test", "-C", "localkube", "-json", "-vet=off", "-ldflags=-s -w", "-run", "X", "./..."}
	if !slices.Equal(got, want) {
		t.Errorf("go %v", got)
	}
}

// A script that calls go test itself would take a skip for a success.
func TestScriptsTestByGotest(t *testing.T) {
	scripts, err := filepath.Glob("../*.sh")
	if err != nil || len(scripts) < 10 {
		t.Fatalf("the scripts are %v, %v", scripts, err)
	}
	direct := regexp.MustCompile(`(?m)^[^#\n]*\bgo (-C \S+ )?test\b.*$`)
	skipsNothing := regexp.MustCompile(`-(list|fuzz|update) `) // they test nothing, or one fuzz target
	for _, name := range append(scripts, "../../Makefile", "../../.ci/run") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range direct.FindAllString(string(text), -1) {
			if !skipsNothing.MatchString(line) {
				t.Errorf("%s does not test by hack/gotest: %s", name, line)
			}
		}
	}
}

// What is declared and nobody says any more is crossed out.
func TestDeclaredSkipsAreThere(t *testing.T) {
	skips, err := parseSkips(declared)
	if err != nil || len(skips) == 0 {
		t.Fatalf("%v, %v", skips, err)
	}
	for _, s := range skips {
		folder := filepath.Join("../..", strings.TrimPrefix(s.pkg, "toban.dev"))
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(name string) bool { return skipsWith(t, name, s.words) }) {
			t.Errorf("no test of %s is skipped with the words %q", s.pkg, s.words)
		}
	}
}

func skipsWith(t *testing.T, name, words string) bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\.Skipf?\("[^"]*` + regexp.QuoteMeta(words)).Match(text)
}

// The whole of it, with a real go test: of this package a test that skips itself where it is asked to.
func TestASkipIsAFailure(t *testing.T) {
	if os.Getenv("GOTEST_SKIPS") != "" {
		t.Skip("it is asked to")
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-count=1", "-run", "^TestASkipIsAFailure$", ".")
	cmd.Env = append(os.Environ(), "GOTEST_SKIPS=yes")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "does not declare:\ntoban.dev/hack/gotest TestASkipIsAFailure") {
		t.Errorf("%v:\n%s", err, out)
	}
}
