package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	cases := map[string]struct {
		output  string
		shows   string
		trouble []string
	}{
		"modules come first":   {"go: downloading a v1\ngo: downloading b v1", "etcd: 2 modules downloaded", nil},
		"packages are counted": {"go: downloading a v1\nruntime\na/b", "etcd: 2 of 10 packages compiled (20%)", nil},
		"the last is the link": {strings.Repeat("x\n", 9), "etcd: linking", nil},
		"what a compiler says is kept": {
			"a/b\n# a/b\n./b.go:3:1: undefined: c", "etcd: 1 of 10 packages compiled (10%)",
			[]string{"# a/b", "./b.go:3:1: undefined: c"},
		},
		"so is what go says": {
			"go: a@v1: no such version", "etcd: 0 of 10 packages compiled (0%)", []string{"go: a@v1: no such version"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			progress := &tally{name: "etcd", total: 10}
			for line := range strings.SplitSeq(c.output, "\n") {
				progress.line(line)
			}
			if progress.String() != c.shows {
				t.Errorf("shows %q, want %q", progress, c.shows)
			}
			if !slices.Equal(progress.trouble, c.trouble) {
				t.Errorf("kept %q, want %q", progress.trouble, c.trouble)
			}
		})
	}
}

func TestEveryComponentHasARecipeThatNamesItsVersion(t *testing.T) {
	for _, r := range All {
		goMod, err := os.ReadFile(filepath.Join("../../components", r.Name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if version, err := r.version(string(goMod)); err != nil || !strings.HasPrefix(version, "v") {
			t.Errorf("%s has version %q, %v", r.Name, version, err)
		}
	}
}

func TestKubernetesIsToldItsVersion(t *testing.T) {
	flags := strings.Join(kubernetesVersion("v1.36.3"), " ")
	for _, want := range []string{".gitVersion=v1.36.3", ".gitMajor=1", ".gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%s is not in %s", want, flags)
		}
	}
}

func TestTheHashChangesWithAllThatDecidesWhatIsBuilt(t *testing.T) {
	source := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	check := func(what string, flags []string, toolchain string) {
		sum, err := hash(source, flags, toolchain)
		if err != nil {
			t.Fatal(err)
		}
		if before, same := seen[sum]; same {
			t.Errorf("%s has the hash of %s", what, before)
		}
		seen[sum] = what
	}
	write("module a")
	check("the first", []string{"-s"}, "go1.26.0")
	check("other flags", []string{"-s", "-w"}, "go1.26.0")
	check("another compiler", []string{"-s"}, "go1.26.1")
	write("module b")
	check("another file", []string{"-s"}, "go1.26.0")
}

func TestASmallComponentIsBuiltOnceAndKept(t *testing.T) {
	b, recipe := smallComponent(t, "package main\n\nfunc main() {}\n")
	dir, err := b.Get(context.Background(), recipe)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.Stat(filepath.Join(dir, "alias"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Get(context.Background(), recipe)
	if err != nil || again != dir {
		t.Errorf("asked again it is in %s, %v", again, err)
	}
	if still, _ := os.Stat(filepath.Join(dir, "alias")); !still.ModTime().Equal(built.ModTime()) {
		t.Error("it was built twice")
	}
}

func TestABuildThatFailsSaysWhyAndKeepsNothing(t *testing.T) {
	b, recipe := smallComponent(t, "package main\n\nfunc main() { missing() }\n")
	_, err := b.Get(context.Background(), recipe)
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("the error does not say why: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Cache, "*small-*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestWaitingForAnotherBuilderCanBeCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func smallComponent(t *testing.T, main string) (Builder, Recipe) {
	t.Helper()
	components := t.TempDir()
	dir := filepath.Join(components, "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":  "module example.com/small\n\ngo 1.26.0\n\n// require example.com/thing v1.2.3\n",
		"main.go": main,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recipe := Recipe{
		Name: "small", Module: "// require example.com/thing", Packages: []string{"."}, Links: []string{"alias"},
	}
	return Builder{Components: components, Cache: t.TempDir(), Progress: t.Output()}, recipe
}
