package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"toban.dev/internal/naming"
)

// A person who calls kubectl toban has no use for what runs in Pods.
func TestAPluginHasTheVerbsForPeopleOnly(t *testing.T) {
	for program, want := range map[string]map[string]bool{
		"/toban": {
			"status": true, "switchover": true, "promote": true, "backup": true, "restore": true, "undelete": true,
			"operator": true, "agent": true, "install": true, "work": true, "init": true, "archive": true,
		},
		"/usr/local/bin/kubectl-toban": {
			"status": true, "switchover": true, "backup": true, "restore": true, "undelete": true, "operator": false,
			"agent": false, "install": false, "work": false, "init": false, "archive": false,
		},
	} {
		has := map[string]bool{}
		for _, c := range command(program).Commands() {
			has[c.Name()] = true
		}
		for verb, there := range want {
			if has[verb] != there {
				t.Errorf("%s has the verb %s: %v, want %v", program, verb, has[verb], there)
			}
		}
	}
}

// A Job that an operator of v0.1.0 has made may run this program: the verbs of its Pods are still there, and none of
// them is for people.
func TestTheFormerVerbsOfPodsAreThere(t *testing.T) {
	for _, former := range []string{
		"backup take", "backup restore", "backup verify", "backup inspect", "backup keys", "init", "passwords", "image",
		"upgrade run", "sides change",
	} {
		words := strings.Fields(former)
		c, rest, err := command("/toban").Find(words)
		if err != nil || len(rest) > 0 || c.Name() != words[len(words)-1] || c.RunE == nil || !c.Hidden {
			t.Errorf("toban %s is %v, %v", former, c.UseLine(), err)
		}
		if c, rest, _ := command("kubectl-toban").Find(words); c.Name() == words[len(words)-1] && len(rest) == 0 {
			t.Errorf("a person sees %s", c.UseLine())
		}
	}
}

// commandOfPod is the command line of one of our containers in a golden file.
var commandOfPod = regexp.MustCompile(
	`- (?:` + naming.PathImageBinary + `|` + naming.PathBinary + `)\n((?:[+ ]*- .*\n)+)`)

// What Pods run is understood: their command lines are in the golden files of the desired objects.
func TestTheCommandLinesOfPodsAreUnderstood(t *testing.T) {
	files, err := filepath.Glob(repository + "/internal/operator/desired/testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range commandOfPod.FindAllStringSubmatch(string(text), -1) {
			var words []string
			for line := range strings.Lines(found[1]) {
				words = append(words, strings.Trim(strings.TrimLeft(line, "+ -\n"), "'\"\n"))
			}
			c, rest, err := command("/toban").Find(words)
			if err != nil || c.RunE == nil {
				t.Errorf("%s: toban %s is no command: %v", file, strings.Join(words, " "), err)
				continue
			}
			verbs[c.CommandPath()] = true
			for _, argument := range rest {
				name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
				if strings.HasPrefix(argument, "--") && c.Flags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag %s", file, c.CommandPath(), argument)
				}
			}
		}
	}
	if len(verbs) < 15 {
		t.Errorf("only these were found: %v", verbs)
	}
}
