package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toban.dev/hack/anchor"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^(#+) +(.+)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	comment = regexp.MustCompile(`(^|\s)#\s.*$`)
)

// Every relative link of a page leads to a file that is there, and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		prose, _ := split(read(t, page))
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			checked++
			if err := leads(page, m[1]); err != nil {
				t.Errorf("%s links to %s: %v", strings.TrimPrefix(page, root+"/"), m[1], err)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// The two READMEs say the same, and can be read in one go.
func TestTheReadmesAreInStep(t *testing.T) {
	english, japanese := read(t, root+"/README.md"), read(t, root+"/README.ja.md")
	for name, text := range map[string]string{"README.md": english, "README.ja.md": japanese} {
		if lines := strings.Count(text, "\n"); lines > 250 {
			t.Errorf("%s has %d lines, more than 250: move what is long to a page in docs/", name, lines)
		}
	}
	prose, blocks := split(english)
	proseJa, blocksJa := split(japanese)
	if have, want := levels(proseJa), levels(prose); !slices.Equal(have, want) {
		t.Errorf("README.ja.md has headings of the levels %v, README.md of %v", have, want)
	}
	if len(blocks) != len(blocksJa) {
		t.Fatalf("README.ja.md has %d blocks of code, README.md %d", len(blocksJa), len(blocks))
	}
	for i := range blocks {
		if have, want := commentless(blocksJa[i]), commentless(blocks[i]); have != want {
			t.Errorf("block %d of README.ja.md is\n%s\nand of README.md\n%s", i+1, have, want)
		}
	}
}

// pages are all pages of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// leads says why a link of a page leads nowhere.
func leads(page, target string) error {
	path, anchor, _ := strings.Cut(target, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("there is no such file: %w", err)
	}
	if anchor == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if !slices.Contains(anchors(string(text)), anchor) {
		return fmt.Errorf("%s has no heading of this name", file)
	}
	return nil
}

// anchors are the names by which GitHub links to the headings of a page.
func anchors(text string) []string {
	prose, _ := split(text)
	var all []string
	var names anchor.Names
	for _, line := range strings.Split(prose, "\n") {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		all = append(all, names.Next(linked.ReplaceAllString(m[2], "$1")))
	}
	return all
}

// split parts a page into what is fenced as code and everything else.
func split(text string) (prose string, blocks []string) {
	var outside, inside []string
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if fenced {
				blocks, inside = append(blocks, strings.Join(inside, "\n")), nil
			}
			fenced = !fenced
		case fenced:
			inside = append(inside, line)
		default:
			outside = append(outside, line)
		}
	}
	return strings.Join(outside, "\n"), blocks
}

func levels(prose string) []int {
	var all []int
	for _, line := range strings.Split(prose, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			all = append(all, len(m[1]))
		}
	}
	return all
}

// commentless is a block of code without its comments, which are translated.
func commentless(block string) string {
	lines := strings.Split(block, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(comment.ReplaceAllString(line, ""), " ")
	}
	return strings.Join(lines, "\n")
}
