package docs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"toban.dev/test/docs/page"
)

// block is one of a page.
type block struct {
	page.Block
	path string // of the page, from the repository's root
	next *page.Block
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.path, b.Line) }

// forPeople are the pages that people follow: not the reference, which is generated, and no history.
func forPeople(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range append(paths, root+"/README.md", root+"/README.ja.md", root+"/CONTRIBUTING.md") {
		all[strings.TrimPrefix(path, root+"/")] = read(t, path)
	}
	return all
}

// allBlocks are those of all these pages.
func allBlocks(t *testing.T) []block {
	t.Helper()
	var all []block
	for path, text := range forPeople(t) {
		blocks, err := page.Blocks(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, b := range blocks {
			one := block{Block: b, path: path}
			if i+1 < len(blocks) {
				one.next = &blocks[i+1]
			}
			all = append(all, one)
		}
	}
	return all
}

// Each command in a block of each page is one that there is: its program, its verb, its options, and the files and
// kinds that it names.
func TestEveryCommandOfThePagesCanBeTyped(t *testing.T) {
	commands, left := 0, 0
	for _, b := range allBlocks(t) {
		if hidden := regexp.MustCompile(`(?m)^ *(kubectl|make|\$) .*$`).FindString(b.Text); hidden != "" &&
			b.Language == "" && len(b.Steps()) == 0 {
			t.Errorf("%v is taken for an answer, and has a command: %s", b, hidden)
		}
		for _, step := range b.Steps() {
			all, err := calls(step.Command)
			if err != nil {
				t.Errorf("%v: %v", b, err)
			}
			for _, words := range all {
				commands++
				if err := isThere(words); err != nil {
					t.Errorf("%v: %s: %v", b, strings.Join(words, " "), err)
				}
			}
		}
		if b.NotRun != "" {
			left++
			t.Logf("%v is not run: %s", b, b.NotRun)
			if err := isReason(b); err != nil {
				t.Errorf("%v: %v", b, err)
			}
		}
	}
	t.Logf("%d commands; %d blocks say why they are not run", commands, left)
	if commands < 150 {
		t.Errorf("only %d commands were found", commands)
	}
}

// isReason says what is wrong with the reason why a block is not run: a test that it names must be there.
func isReason(b block) error {
	if len(b.Steps()) == 0 {
		return errors.New("it has no command, so it needs no reason why it is not run")
	}
	for _, name := range regexp.MustCompile(`\bTest\w+|\bhack/[\w.]+`).FindAllString(b.NotRun, -1) {
		if strings.HasPrefix(name, "hack/") {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				return err
			}
		} else if err := exec.Command("grep", "-rqF", "func "+name+"(t ", root+"/test").Run(); err != nil {
			return fmt.Errorf("there is no test %s: %w", name, err)
		}
	}
	return nil
}

// Commands within sentences are as true as those in blocks. A page breaks its lines within them, writes "…" and "[…]"
// where something may be left out, and may name a verb alone.
func TestEveryCommandWithinASentenceIsThere(t *testing.T) {
	commands := 0
	within := regexp.MustCompile("(?s)`((?:kubectl |make |hack/|bin/localkube )[^`]*)`")
	free := strings.NewReplacer("[", "", "]", "", "…", "", "\n", " ", "<Tab>", "")
	for path, text := range forPeople(t) {
		prose, _ := split(text)
		for _, m := range within.FindAllStringSubmatch(prose, -1) {
			all, err := calls(free.Replace(m[1]))
			if err != nil {
				t.Errorf("%s: %s: %v", path, m[1], err)
				continue
			}
			commands++
			if err := isThere(all[0]); err != nil && !isBegun(all[0], err) {
				t.Errorf("%s: %s: %v", path, m[1], err)
			}
		}
	}
	if commands < 100 {
		t.Errorf("only %d commands were found", commands)
	}
}

// isBegun says whether a command lacks only what follows: a sentence may write of `kubectl toban restore`.
func isBegun(words []string, err error) bool {
	return errors.Is(err, errFewWords) || strings.HasPrefix(err.Error(), "flag needs an argument") ||
		strings.HasSuffix(words[0], "/")
}

// calls are the commands of a script, each as its words. What the shell would put in stands as X.
func calls(script string) ([][]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("no shell can read it: %w", err)
	}
	functions := map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, is := n.(*syntax.FuncDecl); is {
			functions[f.Name.Value] = true
		}
		return true
	})
	var all [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, word := range call.Args {
			words = append(words, literal(word.Parts))
		}
		if !functions[words[0]] {
			all = append(all, withoutWrapper(words)...)
		}
		return true
	})
	return all, nil
}

// withoutWrapper is a command, and the one that it starts.
func withoutWrapper(words []string) [][]string {
	all := [][]string{words}
	if words[0] != "env" && words[0] != "xargs" {
		return all
	}
	for i, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return append(all, words[i+1:])
		}
	}
	return all
}

// literal is a word as its program gets it.
func literal(parts []syntax.WordPart) string {
	var out strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			out.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			out.WriteString(p.Value)
		case *syntax.DblQuoted:
			out.WriteString(literal(p.Parts))
		default:
			out.WriteString("X")
		}
	}
	return out.String()
}

// isThere says why a command can't be typed.
func isThere(words []string) error {
	switch program := words[0]; {
	case program == "kubectl":
		return kubectl(words[1:])
	case program == "make":
		return target(words[1:])
	case program == "go":
		return folders(words[1:])
	case program == "helm":
		return helped(tools("hack/tool.sh", "helm"), words[1:])
	case program == "bin/localkube":
		return helped(localkube, words[1:])
	case strings.HasPrefix(program, "hack/"):
		_, err := os.Stat(filepath.Join(root, program))
		return err
	case page.Programs()[program] == "" && program != "exit" && program != "shift":
		return fmt.Errorf("page.Programs does not have %s: is it a program that readers have?", program)
	}
	return nil
}

// target looks for one of the Makefile's.
func target(words []string) error {
	if len(words) == 0 {
		return nil
	}
	makefile, err := os.ReadFile(root + "/Makefile")
	if err == nil && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(words[0])+`:`).Match(makefile) {
		err = fmt.Errorf("the Makefile has no target %s", words[0])
	}
	return err
}

// folders looks for the packages of a go command.
func folders(words []string) error {
	for _, word := range words {
		if folder, found := strings.CutPrefix(word, "./"); found {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(folder, "/..."))); err != nil {
				return fmt.Errorf("find the package: %w", err)
			}
		}
	}
	return nil
}

// localkube is the program of that module.
var localkube = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "toban-docs-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "localkube")
	out, err := exec.Command("go", "build", "-C", root+"/localkube", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build localkube: %w: %s", err, out)
	}
	return path, err
})

// tools is a program that is built once for the machine, by a script.
func tools(script, name string) func() (string, error) {
	return func() (string, error) {
		out, err := exec.Command(filepath.Join(root, script), name).Output()
		return strings.TrimSpace(string(out)), err
	}
}

// helped gives a program its words and asks for help: it refuses options and verbs that it does not have before that.
func helped(program func() (string, error), words []string) error {
	path, err := program()
	if err != nil {
		return err
	}
	out, err := exec.Command(path, append(words, "--help")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// The tables that a page shows after kubectl get have the columns that the kinds have.
func TestTheTablesOfThePagesHaveTheColumnsOfTheKinds(t *testing.T) {
	heads := map[string]bool{}
	for _, kind := range ourKinds() {
		head := "NAME"
		for _, c := range kind.Spec.Versions[0].AdditionalPrinterColumns {
			if c.Priority == 0 {
				head += " " + strings.ToUpper(c.Name)
			}
		}
		heads[head] = true
	}
	checked := 0
	gets := regexp.MustCompile(`kubectl get \S*(?i:sampledb|myapp|postgresql|pg|databasebackup|faultdrill)`)
	for _, b := range allBlocks(t) {
		for _, step := range b.Steps() {
			if step.Output == "" && b.next != nil && b.next.Language == "" && len(b.next.Steps()) == 0 {
				step.Output = b.next.Text
			}
			for _, head := range page.Heads(step.Output) {
				if !gets.MatchString(step.Command) {
					continue
				}
				checked++
				if !heads[head] {
					t.Errorf("%v: no kind has the columns %s", b, head)
				}
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d tables were found", checked)
	}
}
