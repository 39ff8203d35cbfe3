package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// guard is a rule of depguard in .golangci.yml.
type guard struct {
	Files []string `json:"files"`
	Deny  []struct {
		Package string `json:"pkg"`
	} `json:"deny"`
}

// glob says whether a pattern of files, as depguard has it, is about a file.
func glob(pattern, file string) bool {
	words := strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`^` + words + `$`).MatchString("/" + file)
}

// holds says that a rule is about a file.
func (g guard) holds(file string) (is bool) {
	for _, f := range g.Files {
		out, not := strings.CutPrefix(f, "!")
		if not && glob(out, file) {
			return false
		}
		is = is || glob(f, file)
	}
	return is
}

// heldBy are folders all of which is held by a rule.
var heldBy = map[string]string{
	"internal/work/": "work", "internal/operator/": "operator", "internal/archive/second/": "secondarchive",
}

// guards are the rules.
func guards(t *testing.T, root fs.FS) map[string]guard {
	t.Helper()
	text, err := fs.ReadFile(root, ".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var lint struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]guard `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(text, &lint); err != nil {
		t.Fatal(err)
	}
	return lint.Linters.Settings.Depguard.Rules
}

// sources are the files that the rules are about, but for tests.
func sources(t *testing.T, root fs.FS) (files []string) {
	t.Helper()
	for _, below := range []string{"internal", "api", "cmd"} {
		err := fs.WalkDir(root, below, func(name string, _ fs.DirEntry, err error) error {
			if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Code that gets a folder of its own must not get out of the rules about what it may import.
func TestNoFolderIsOutOfTheImportArrows(t *testing.T) {
	root := os.DirFS("../..")
	rules := guards(t, root)
	for _, file := range sources(t, root) {
		for below, rule := range heldBy {
			if strings.HasPrefix(file, below) && !rules[rule].holds(file) {
				t.Errorf("%s is out of the rule %s", file, rule)
			}
		}
	}
}

// A rule about files or packages that have another name by now holds nothing.
func TestTheImportArrowsAreAboutWhatIsThere(t *testing.T) {
	root := os.DirFS("../..")
	files := sources(t, root)
	for name, rule := range guards(t, root) {
		for _, f := range rule.Files {
			pattern := strings.TrimPrefix(f, "!")
			there := slices.ContainsFunc(files, func(file string) bool { return glob(pattern, file) })
			if !there && pattern != "$test" && pattern != "**/localkube/**" {
				t.Errorf("the rule %s is about %s, and there is no such file", name, f)
			}
		}
		for _, d := range rule.Deny {
			folder, ours := strings.CutPrefix(strings.TrimSuffix(d.Package, "$"), "toban.dev/")
			if _, err := fs.Stat(root, path.Clean(folder)); ours && err != nil {
				t.Errorf("the rule %s denies %s, which is not there", name, d.Package)
			}
		}
	}
}
