package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is where the pages are.
const repository = "../.."

// generated is the page of the commands: it is written from them.
const generated = "docs/reference/kubectl-toban.md"

// pages are README.md, its twin, CONTRIBUTING.md and those in docs, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(repository, path)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	for _, name := range []string{"README.md", "README.ja.md", "CONTRIBUTING.md"} {
		add(filepath.Join(repository, name))
	}
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			add(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(all, generated)
	return all
}

// commands are those in a page that begin with a word: in lines of their own, and in a text between backticks. A page
// breaks its lines within them. What follows "#" and ";" or "|" is no part of one.
func commands(page, begin string) (all []string) {
	var text strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			text.WriteString(strings.ReplaceAll(line, "\n", " "))
			continue
		}
		if command, _, _ := strings.Cut(strings.TrimSpace(line), " #"); strings.HasPrefix(command, begin) {
			all = append(all, command)
		}
	}
	for i, part := range strings.Split(text.String(), "`") {
		if part = strings.TrimSpace(part); i%2 == 1 && strings.HasPrefix(part, begin) {
			all = append(all, part)
		}
	}
	for i, command := range all {
		all[i], _, _ = strings.Cut(command, " | ")
	}
	return all
}

// placeholders are what a page writes where something may be left out.
var placeholders = strings.NewReplacer("[", "", "]", "", "…", "")

// words are those of a command, with what is between quotes as one.
func words(command string) (out []string) {
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(placeholders.Replace(command), -1) {
		out = append(out, strings.Trim(word, `'"`))
	}
	return out
}

// A command in a page is one that the program has, with options that it has and as many names as it takes.
func TestTheCommandsOfThePagesAreThere(t *testing.T) {
	n := 0
	for page, text := range pages(t) {
		for _, line := range commands(text, "kubectl toban ") {
			n++
			found, args, err := command("kubectl-toban").Find(words(line)[2:])
			if err != nil || !found.HasParent() {
				t.Errorf("%s: %s: there is no such verb: %v", page, line, err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%s: %s: %v", page, line, err)
				continue
			}
			named := found.Flags().Args()
			if err := found.ValidateArgs(named); err != nil && len(named) > 0 { // a page may write of a verb alone
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d commands were found", n)
	}
}

func TestTheTargetsOfThePagesAreThere(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for page, text := range pages(t) {
		for _, line := range commands(text, "make ") {
			n++
			target := words(line)[1]
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
				t.Errorf("%s: %s: the Makefile has no such target", page, line)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d targets were found", n)
	}
}

// Files of the repository that a page has kubectl apply.
func TestTheManifestsOfThePagesAreThere(t *testing.T) {
	file := regexp.MustCompile(`-f (config/\S+?\.yaml)`)
	n := 0
	for page, text := range pages(t) {
		for _, match := range file.FindAllStringSubmatch(text, -1) {
			n++
			if _, err := os.Stat(filepath.Join(repository, match[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d files were found", n)
	}
}
