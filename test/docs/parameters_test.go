// Package docs_test holds the documents to what the code does.
package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/postgres"
)

// The operator's own parameters stand in three places: in the rule that refuses
// them at kubectl apply, in the agent, and in docs/parameters.md.
func TestOwnedParametersAreTheSameEverywhere(t *testing.T) {
	rule := match(t, "../../api/v1/sampledb.go", `name\.lowerAscii\(\) in \[([^\]]*)\]`)
	ruled := names(rule, `'([a-z_]+)'`)
	for _, prefix := range names(read(t, "../../api/v1/sampledb.go"), `lowerAscii\(\)\.startsWith\('([a-z_]+)'\)`) {
		ruled = append(ruled, prefix+"…")
	}
	documented := names(match(t, "../../docs/parameters.md", `(?s)not yours to set \|\n(.*?)\n\n`), "`([a-z_]+…?)`")
	slices.Sort(ruled)
	slices.Sort(documented)
	if len(ruled) < 30 {
		t.Fatalf("only %d parameters were found in the rule: %q", len(ruled), ruled)
	}
	if !slices.Equal(ruled, documented) {
		t.Errorf("docs/parameters.md lacks %q and has %q too many",
			without(ruled, documented), without(documented, ruled))
	}
	for _, name := range ruled {
		if !postgres.Owned(strings.Replace(name, "…", "x", 1)) {
			t.Errorf("the rule refuses %s, but the agent takes it", name)
		}
	}
}

// The defaults of the document are set by the operator.
func TestDocumentedDefaultsAreSet(t *testing.T) {
	code := read(t, "../../internal/operator/desired/parameters.go")
	for _, name := range names(match(t, "../../docs/parameters.md", `(?s)\| value \| why \|\n(.*)`), "`([a-z_]+)`") {
		if !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("docs/parameters.md has a default of %s, internal/operator/desired/parameters.go has none", name)
		}
	}
	documented := read(t, "../../docs/parameters.md")
	for _, name := range names(code, `"([a-z]+_[a-z_]+)"(?::|\] =)`) {
		if !strings.Contains(documented, "`"+name+"`") {
			t.Errorf("docs/parameters.md does not have the default of %s", name)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// match is the first group of a pattern in a file.
func match(t *testing.T, path, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if found == nil {
		t.Fatalf("%s has nothing like %s", path, pattern)
	}
	return found[1]
}

func names(text, pattern string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	return all
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}
