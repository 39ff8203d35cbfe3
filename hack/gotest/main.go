// Gotest is "go test" with one more rule: a test that is skipped is a failure, unless the skip is declared in
// skips.txt beside this. A run in which nothing was tested is a failure too. Arguments are those of go test.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

//go:embed skips.txt
var declared string

func main() {
	if folder := os.Getenv(measured); folder != "" {
		code, err := measure(os.Args[1:], folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
			code = 1
		}
		os.Exit(code)
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) { // go test has said already what failed
			fmt.Fprintln(os.Stderr, "gotest:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	skips, err := parseSkips(declared)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "gotest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	cmd := exec.Command("go", testArgs(args)...)
	if err := withMeasure(cmd, folder); err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // go test gets it as well, and ends
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReport(out, skips, slices.Contains(args, "-v"))
	read := r.read(events)
	ended := cmd.Wait()
	r.tellSlowest()
	all, err := readMeasured(folder)
	if err != nil {
		return err
	}
	tellUsed(out, all, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	r.tellFailed()
	if err := r.writePassed(os.Getenv(passedFile)); err != nil {
		return err
	}
	if ended != nil {
		return errors.Join(ended, read)
	}
	return errors.Join(read, r.verdict())
}

// testArgs asks go test for events, and not to vet: make check and make test do that once, and go test would do it
// anew with other settings, for all that is imported too. What only a debugger reads is not linked: to link is half of
// what the pure tests cost, and a fifth less without it. A folder to work in has to stay in front, and flags of tests
// behind.
func testArgs(args []string) []string {
	head := []string{"test"}
	if len(args) > 1 && args[0] == "-C" {
		head, args = append(head, args[:2]...), args[2:]
	}
	return slices.Concat(head, []string{"-json", "-vet=off", "-ldflags=-s -w"}, args)
}

// skip is a declared one: where, and what the test says.
type skip struct{ pkg, words string }

// parseSkips reads lines of a package and what its tests say when they are skipped. Lines that begin with # say why.
func parseSkips(text string) (skips []skip, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pkg, words, ok := strings.Cut(line, " ")
		if words = strings.TrimSpace(words); !ok || words == "" {
			return nil, fmt.Errorf("skips.txt: %q is not a package and what its tests say", line)
		}
		skips = append(skips, skip{pkg, words})
	}
	return skips, nil
}

// event is one of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds, of a test that has ended
}

type test struct{ pkg, name string }

// report prints what go test would print, and gathers what was skipped.
type report struct {
	out     io.Writer
	skips   []skip
	verbose bool
	// said is what tests have printed that have not passed yet.
	said         map[test]*bytes.Buffer
	ran          int
	undeclared   []string
	skippedKnown int
	took         []took
	passed       []took
	failed       []string
}

// took is how long a test took, in seconds.
type took struct {
	test
	seconds float64
}

// What is worth knowing when all takes too long: so many tests, each of so many seconds at least.
const (
	slowest = 10
	slow    = 20
)

func newReport(out io.Writer, skips []skip, verbose bool) *report {
	return &report{out: out, skips: skips, verbose: verbose, said: map[test]*bytes.Buffer{}}
}

func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.see(e)
		} else {
			_, _ = r.out.Write(line) // what go itself says
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test says: %w", err)
		}
	}
}

func (r *report) see(e event) {
	at := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.print(at, e.Output)
	case "pass", "fail":
		r.end(at, e.Action == "fail")
		r.time(at, e.Elapsed, e.Action == "pass")
	case "skip":
		if e.Test != "" { // else it is a package without tests
			r.skipped(at)
		}
		delete(r.said, at)
	}
}

func (r *report) print(at test, text string) {
	switch {
	case r.verbose:
		fmt.Fprint(r.out, text)
	case at.name == "" && text != "PASS\n":
		fmt.Fprint(r.out, text)
		return
	}
	if r.said[at] == nil {
		r.said[at] = &bytes.Buffer{}
	}
	r.said[at].WriteString(text)
}

// end prints what a test that failed has said. Where a package fails, so do the tests that have not come to their end.
func (r *report) end(at test, failed bool) {
	if at.name != "" {
		r.ran++
	}
	for of, said := range r.said {
		if of.pkg != at.pkg || at.name != "" && of.name != at.name {
			continue
		}
		if failed && of.name != "" {
			r.failed = append(r.failed, of.pkg+" "+of.name+"\n"+complaints(said.String()))
		}
		if failed && !r.verbose {
			_, _ = said.WriteTo(r.out)
		}
		delete(r.said, of)
	}
}

// time remembers a test of its own that passed, and one that was slow, which it tells at once: whoever waits sees that
// it goes on. The time of its parts counts in it.
func (r *report) time(at test, seconds float64, passed bool) {
	if at.name == "" || strings.Contains(at.name, "/") {
		return
	}
	if seconds >= slow {
		r.took = append(r.took, took{at, seconds})
		if passed { // one that failed has said more
			fmt.Fprintf(r.out, "passed after %.0f s: %s %s\n", seconds, at.pkg, at.name)
		}
	}
	if passed {
		r.passed = append(r.passed, took{at, seconds})
	}
}

// passedFile names a variable of the environment with a file: each test that passed gets a line in it, of its package,
// its name and its seconds. hack/suite reads it.
const passedFile = "TOBAN_PASSED"

// writePassed writes that file, where it is asked for.
func (r *report) writePassed(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, t := range r.passed {
		_, err = fmt.Fprintln(f, t.pkg, t.name, t.seconds)
		if err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

// tellSlowest prints the tests that took longest.
func (r *report) tellSlowest() {
	slices.SortFunc(r.took, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range r.took[:min(slowest, len(r.took))] {
		fmt.Fprintf(r.out, "%6.0f s  %s %s\n", t.seconds, t.pkg, t.name)
	}
}

// complaint is the first line of what a test says by itself, with where it says it. More is in what was printed before.
var complaint = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: .{0,300}`)

// complaints is what a test has said, without the lines that only belong to others of it, and what it shows at its end.
func complaints(said string) string {
	var lines strings.Builder
	for _, line := range complaint.FindAllString(said, -1) {
		if !strings.Contains(line, ": what is left: ") {
			lines.WriteString(line + "\n")
		}
	}
	return lines.String()
}

// tellFailed repeats at the end, in short, which tests failed and why: they may have printed thousands of lines.
func (r *report) tellFailed() {
	if len(r.failed) > 0 {
		fmt.Fprintf(r.out, "%d tests failed:\n%s", len(r.failed), strings.Join(r.failed, ""))
	}
}

func (r *report) skipped(at test) {
	words := ""
	if said := r.said[at]; said != nil {
		words = said.String()
	}
	for _, s := range r.skips {
		if s.pkg == at.pkg && strings.Contains(words, s.words) {
			r.skippedKnown++
			return
		}
	}
	r.undeclared = append(r.undeclared, fmt.Sprintf("%s %s\n%s", at.pkg, at.name, words))
}

func (r *report) verdict() error {
	switch {
	case len(r.undeclared) > 0:
		return fmt.Errorf("%d tests were skipped, which hack/gotest/skips.txt does not declare:\n%s",
			len(r.undeclared), strings.Join(r.undeclared, ""))
	case r.ran == 0:
		return errors.New("nothing was tested")
	case r.skippedKnown > 0:
		fmt.Fprintf(r.out, "%d tests were skipped, as hack/gotest/skips.txt declares\n", r.skippedKnown)
	}
	return nil
}
