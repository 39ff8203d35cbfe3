package mixed

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// repository is the folder of the whole code, seen from here.
const repository = "../.."

// A field that a release has stays, with its type and in its place, as long as its version of the API does.
func TestNoFieldOfAFormerReleaseIsGone(t *testing.T) {
	for _, r := range releases(t) {
		r.mustBeHere(t, repository)
		crds := crdsOf(t, r)
		if len(crds) == 0 {
			t.Errorf("%s has no kind", r.version)
		}
		for _, file := range crds {
			before := fieldsOf(t, r.show(t, file))
			text, err := os.ReadFile(path.Join(repository, file))
			if err != nil {
				t.Errorf("a kind of %s is gone: %v", r.version, err)
				continue
			}
			now := fieldsOf(t, string(text))
			for name, kind := range before {
				if now[name] != kind {
					t.Errorf("%s, %s: it was %q in %s, and is %q", file, name, kind, r.version, now[name])
				}
			}
			if len(before) < 50 {
				t.Errorf("only %d fields of %s in %s were found", len(before), file, r.version)
			}
		}
	}
}

var (
	partOfRelease = regexp.MustCompile(`(?m)^## v(\S+)$`)
	boldWord      = regexp.MustCompile(`\*\*([A-Z]\w+)\*\*`)
)

// The list of changes says of each former release which commit it is, and which kinds that has.
func TestTheListOfChangesHasEachRelease(t *testing.T) {
	text, err := os.ReadFile(path.Join(repository, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := releases(t)
	for _, r := range all {
		part, found := partOf(string(text), r.version)
		if !found || !strings.Contains(part, r.commit) {
			t.Errorf("CHANGELOG.md does not have %s with its commit %s", r.version, r.commit)
		}
		r.mustBeHere(t, repository)
		if said, kinds := wordsIn(part), kindsOf(t, r); !slices.Equal(said, kinds) {
			t.Errorf("CHANGELOG.md says of %s that it has %q, and it has %q", r.version, said, kinds)
		}
	}
	for i, m := range partOfRelease.FindAllStringSubmatch(string(text), -1) {
		// The newest one may be about to be made: its commit is not known before.
		known := slices.ContainsFunc(all, func(r release) bool { return r.version == m[1] })
		if i > 0 && !known {
			t.Errorf("test/mixed/releases does not have %s, which CHANGELOG.md has", m[1])
		}
	}
}

// partOf is what the list of changes has under the heading of a release.
func partOf(text, version string) (string, bool) {
	_, part, found := strings.Cut(text, "\n## v"+version+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	return part, found
}

// wordsIn are the kinds that a part of the list of changes names, each once.
func wordsIn(part string) (kinds []string) {
	for _, m := range boldWord.FindAllStringSubmatch(part, -1) {
		kinds = append(kinds, m[1])
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// crdsOf are the files with the kinds of a release.
func crdsOf(t *testing.T, r release) []string {
	t.Helper()
	list, err := output(exec.CommandContext(t.Context(), "git", "-C", repository, "ls-tree", "--name-only", r.commit,
		"config/crd/"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(list)
}

func kindsOf(t *testing.T, r release) (kinds []string) {
	t.Helper()
	for _, file := range crdsOf(t, r) {
		kinds = append(kinds, parse(t, r.show(t, file)).Spec.Names.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

// show is a file as a release has it.
func (r release) show(t *testing.T, file string) string {
	t.Helper()
	text, err := output(exec.CommandContext(t.Context(), "git", "-C", repository, "show", r.commit+":"+file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// crd is what these tests read of a CustomResourceDefinition.
type crd struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				Schema schema `json:"openAPIV3Schema"`
			}
		}
	}
}

type schema struct {
	Type       string
	Properties map[string]schema
	Items      *schema
}

func parse(t *testing.T, text string) (c crd) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// fieldsOf are the fields of all versions of a kind, with their types.
func fieldsOf(t *testing.T, text string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for _, v := range parse(t, text).Spec.Versions {
		v.Schema.Schema.collect(v.Name, fields)
	}
	return fields
}

func (s schema) collect(name string, into map[string]string) {
	into[name] = s.Type
	for field, below := range s.Properties {
		below.collect(fmt.Sprintf("%s.%s", name, field), into)
	}
	if s.Items != nil {
		s.Items.collect(name+"[]", into)
	}
}
