// Package page finds the blocks of code in a page of the documentation, and what a person types of them. Tests parse
// all of them (test/docs) and run those of the first pages (test/e2e).
package page

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is what stands between two fences.
type Block struct {
	// Line is that of the first fence.
	Line int
	// Language is what stands behind the fence. It may be empty.
	Language string
	// Text has no more indentation than the fence.
	Text string
	// NotRun says why it can't be run where the documentation is tried: the comment <!-- not run: … --> before it.
	NotRun string
}

// Step is what a person types at once, and sees.
type Step struct {
	// Command is for a shell.
	Command string
	// Input is what is typed into the program that the command has started.
	Input string
	// Output is what the page shows of the answer. It may be empty.
	Output string
}

var (
	fence  = regexp.MustCompile("^( *)```(.*)$")
	mark   = regexp.MustCompile(`^\s*<!--`)
	notRun = regexp.MustCompile(`^\s*<!-- not run: (.+) -->$`)
	prompt = regexp.MustCompile(`^\w+=[#>] (.+)$`) // that of psql
)

// Blocks are those of a page. It is an error if one does not end, or if a comment says of nothing that it is not run.
func Blocks(text string) ([]Block, error) {
	var all []Block
	var inside *Block
	indent, reason := "", ""
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && inside == nil:
			inside, indent = &Block{Line: i + 1, Language: m[2], NotRun: reason}, m[1]
			reason = ""
		case m != nil:
			all, inside = append(all, *inside), nil
		case inside != nil:
			inside.Text += strings.TrimPrefix(line, indent) + "\n"
		case strings.TrimSpace(line) != "" && !mark.MatchString(line) && reason != "":
			return nil, fmt.Errorf("line %d: what is not run is not there: a block must follow the comment", i+1)
		default:
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			}
		}
	}
	if inside != nil {
		return nil, fmt.Errorf("line %d: the block does not end", inside.Line)
	}
	return all, nil
}

// Steps are what a person types of a block; there is none in a block that shows something else.
func (b Block) Steps() []Step {
	switch first, _, _ := strings.Cut(b.Text, "\n"); {
	case strings.HasPrefix(first, "$ "):
		return typed(b.Text)
	case b.Language == "bash", b.Language == "sh", b.Language == "" && beginsACommand(first):
		return []Step{{Command: b.Text}}
	}
	return nil
}

// typed are the steps of a block with prompts: what follows "$" is a command, what follows psql's prompt is for psql,
// and all else is an answer.
func typed(text string) []Step {
	var all []Step
	for line := range strings.Lines(text) {
		if command, found := strings.CutPrefix(line, "$ "); found {
			all = append(all, Step{Command: command})
			continue
		}
		last := &all[len(all)-1]
		if m := prompt.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			last.Input += m[1] + "\n"
		} else {
			last.Output += line
		}
	}
	return all
}

// Programs are those that commands of the pages begin with, each with where a person has it from.
func Programs() map[string]string {
	all := map[string]string{
		"kubectl": "the cluster", "helm": "Helm", "make": "Debian", "go": "Go", "psql": "PostgreSQL",
		"crictl": "a node",
		"age":    "age", "age-keygen": "age", "jq": "jq", "curl": "curl", "openssl": "OpenSSL", "zstd": "zstd",
		"pg_verifybackup": "PostgreSQL", "pg_combinebackup": "PostgreSQL", "pg_ctl": "PostgreSQL",
	}
	for _, name := range []string{
		"env", "export", "ln", "sed", "echo", "cat", "base64", "xargs", "date", "command", "sha256sum", "ls", "sort",
		"mkdir", "tar", "grep", "cut", "printf", "touch", "rm", "dirname", "truncate", "dd", "cd", "[", "continue",
	} {
		all[name] = "the shell, or coreutils"
	}
	return all
}

// beginsACommand says whether a line is a command: it begins with a program, with one of the repository, or with a
// variable that gets a value.
func beginsACommand(line string) bool {
	word := strings.TrimLeft(strings.TrimSpace(line), "(")
	if regexp.MustCompile(`^\w+=\$\(`).MatchString(word) {
		return true
	}
	word, _, _ = strings.Cut(word, " ")
	return Programs()[word] != "" || strings.HasPrefix(word, "hack/") || strings.HasPrefix(word, "bin/")
}

// Heads are the headings of the tables in an answer, as kubectl prints them: each with its columns.
func Heads(answer string) []string {
	var all []string
	for line := range strings.Lines(answer) {
		if regexp.MustCompile(`^[A-Z]+( +[A-Z]+)+\s*$`).MatchString(line) {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	return all
}
