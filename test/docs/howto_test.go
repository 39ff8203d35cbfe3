package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
)

var (
	inBackquotes = regexp.MustCompile("`([^`]+)`")
	option       = regexp.MustCompile(`(^| )(--?[a-z][a-z-]*)`)
	annotated    = regexp.MustCompile(`toban\.dev/[a-z-]+`)
)

// Each command of the page of tasks is one that there is, with its options, and each line of a spec can be applied.
func TestTheTasksAreDoneAsThePageSays(t *testing.T) {
	page := read(t, root+"/docs/howto.md")
	commands, specs := 0, 0
	for _, m := range inBackquotes.FindAllStringSubmatch(page, -1) {
		switch code := m[1]; {
		case strings.Contains(code, "kubectl toban "):
			commands++
			theCommandIsThere(t, code)
		case strings.HasPrefix(code, "spec: "):
			specs++
			if err := yaml.UnmarshalStrict([]byte(code), &v1.SampleDB{}); err != nil && !strings.Contains(code, "…") {
				t.Errorf("%s is no spec of a SampleDB: %v", code, err)
			}
		}
	}
	annotations := read(t, root+"/docs/reference/annotations.md")
	for _, name := range annotated.FindAllString(page, -1) {
		if !strings.Contains(annotations, "`"+name+"`") {
			t.Errorf("there is no annotation %s", name)
		}
	}
	if commands < 20 || specs < 15 {
		t.Errorf("only %d commands and %d lines of a spec were found", commands, specs)
	}
}

// theCommandIsThere looks a command up in the reference, which is generated from the program.
func theCommandIsThere(t *testing.T, code string) {
	t.Helper()
	_, rest, _ := strings.Cut(code, "kubectl toban ")
	verb, rest, _ := strings.Cut(rest, " ")
	rest, _, _ = strings.Cut(rest, " -- ") // what follows is another program's
	_, help, found := strings.Cut(read(t, root+"/docs/reference/kubectl-toban.md"), "\n## kubectl toban "+verb+"\n")
	if help, _, _ = strings.Cut(help, "\n## "); !found {
		t.Errorf("%s: there is no such command", code)
	}
	for _, m := range option.FindAllStringSubmatch(rest, -1) {
		if !regexp.MustCompile(`(?m)^ +(-[a-zA-Z], )?` + m[2] + `\b`).MatchString(help) {
			t.Errorf("%s: the command has no option %s", code, m[2])
		}
	}
}
