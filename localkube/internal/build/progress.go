package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A tally is how far a build is, read off what `go build -v` prints: a line
// per package compiled, per module downloaded, and whatever went wrong.
type tally struct {
	mu         sync.Mutex
	name       string
	total      int // packages there are; those compiled earlier are never printed
	compiled   int
	downloaded int
	trouble    []string
}

// line takes in one line of output.
func (t *tally) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case text == "":
	case strings.HasPrefix(text, "go: downloading "):
		t.downloaded++
	case isPackage(text):
		t.compiled++
	default:
		t.trouble = append(t.trouble, text)
	}
}

// expect sets how many packages there are.
func (t *tally) expect(total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total = total
}

// isPackage tells an import path from a message: a path is one word, and what
// a compiler says has spaces or a colon.
func isPackage(text string) bool { return !strings.ContainsAny(text, " \t:#") }

// String is one line of progress.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.compiled == 0 && t.downloaded > 0:
		return fmt.Sprintf("%s: %d modules downloaded", t.name, t.downloaded)
	case t.total > 0 && t.compiled >= t.total-1:
		return fmt.Sprintf("%s: linking", t.name)
	case t.total > 0:
		return fmt.Sprintf("%s: %d of %d packages compiled (%d%%)", t.name, t.compiled, t.total, 100*t.compiled/t.total)
	default:
		return fmt.Sprintf("%s: %d packages compiled", t.name, t.compiled)
	}
}

// compile runs `go build`, saying how far it is.
func (b Builder) compile(ctx context.Context, r Recipe, version, output string) error {
	began := time.Now()
	source := filepath.Join(b.Components, r.Name)
	progress := &tally{name: "building " + r.Name + " " + version}
	fmt.Fprintf(b.Progress, "%s (once: the result is kept in %s)\n", progress.name, b.Cache)

	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() { report(b.Progress, progress, began, done) })
	progress.expect(countPackages(ctx, r, source, progress))
	err := runGo(ctx, r, source, r.arguments(version, output), progress)
	close(done)
	reporter.Wait()
	if err != nil {
		return fmt.Errorf("build %s (in %s):\n%s\n%w", r.Name, source, strings.Join(progress.trouble, "\n"), err)
	}
	fmt.Fprintf(b.Progress, "built %s %s in %s\n", r.Name, version, time.Since(began).Round(time.Second))
	return nil
}

// countPackages is how many packages the build consists of, or 0 if that
// cannot be told; then the build itself will say why.
func countPackages(ctx context.Context, r Recipe, source string, progress *tally) int {
	var out strings.Builder
	args := append([]string{"list", "-deps", "-buildvcs=false", "-tags", r.Tags}, r.Packages...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = source, r.environment()
	command.Stdout, command.Stderr = &out, &lineWriter{take: progress.line}
	if command.Run() != nil {
		return 0
	}
	return strings.Count(out.String(), "\n")
}

// runGo runs go at low priority: a build takes all cores for minutes.
func runGo(ctx context.Context, r Recipe, source string, args []string, progress *tally) error {
	command := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", "go"}, args...)...)
	command.Dir, command.Env = source, r.environment()
	out := &lineWriter{take: progress.line}
	command.Stdout, command.Stderr = out, out
	return command.Run()
}

// A lineWriter calls take with each line that is written to it.
type lineWriter struct {
	take func(string)
	rest []byte
}

func (w *lineWriter) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	for {
		line, after, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		w.take(string(line))
		w.rest = after
	}
}

// report shows the progress: on a terminal in one line that changes, elsewhere
// (a CI's log) a line from time to time.
func report(to io.Writer, progress *tally, began time.Time, done <-chan struct{}) {
	interval, format, end := 20*time.Second, "  %s, %s so far\n", ""
	if isTerminal(to) {
		interval, format, end = 500*time.Millisecond, "\r\033[K  %s, %s so far", "\r\033[K"
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			fmt.Fprint(to, end)
			return
		case <-ticker.C:
			fmt.Fprintf(to, format, progress, time.Since(began).Round(time.Second))
		}
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
