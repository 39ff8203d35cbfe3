package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/build/constraint"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A test is a function that go test runs: a test, a fuzz test, an example or a benchmark.
type test struct {
	// module and folder are where it is: the folder within the module.
	module, folder, name string
	// when is its file's build constraint; nil if it has none.
	when constraint.Expr
}

// String is how a test is called in lists and in the record.
func (t test) String() string { return path.Join(t.module, t.folder) + " " + t.name }

// compiled says whether its file is part of a build with these tags.
func (t test) compiled(tags string) bool {
	return t.when == nil || t.when.Eval(func(tag string) bool { return tag == "linux" || tag == tags })
}

// declaration is the line that declares one. gofmt has each at the beginning of a line.
var declaration = regexp.MustCompile(`^func ((?:Test|Fuzz|Example|Benchmark)(?:[^a-z(\s][^(\s]*)?)\(`)

// findTests finds all tests of a repository: its modules, and the files of each.
func findTests(repository fs.FS) ([]test, error) {
	var files, modules []string
	err := fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base[0] == '.' || base == "testdata" || base == "dist" || base == "bin"):
			return fs.SkipDir
		case base == "go.mod":
			modules = append(modules, path.Dir(name))
		case strings.HasSuffix(base, "_test.go"):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []test
	for _, name := range files {
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			return nil, err
		}
		module := moduleOf(modules, name)
		folder := strings.TrimPrefix(path.Dir(name), module+"/")
		if path.Dir(name) == module {
			folder = ""
		}
		found, err := testsOf(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, t := range found {
			t.module, t.folder = module, folder
			all = append(all, t)
		}
	}
	return all, nil
}

// moduleOf is the innermost module of a file.
func moduleOf(modules []string, file string) string {
	of := "."
	for _, m := range modules {
		if strings.HasPrefix(file, m+"/") && len(m) > len(of) {
			of = m
		}
	}
	return of
}

// testsOf are the tests of a file.
func testsOf(text []byte) (found []test, err error) {
	var when constraint.Expr
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		line := lines.Text()
		if constraint.IsGoBuild(line) {
			if when, err = constraint.Parse(line); err != nil {
				return nil, err
			}
		}
		if m := declaration.FindStringSubmatch(line); m != nil && m[1] != "TestMain" {
			found = append(found, test{name: m[1], when: when})
		}
	}
	return found, lines.Err()
}

// longOnes are the long stories among tests.
func longOnes(all []test) []test {
	return slices.DeleteFunc(slices.Clone(all), func(t test) bool { return !t.long() })
}
