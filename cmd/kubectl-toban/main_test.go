package main

import (
	"os/exec"
	"strings"
	"testing"
)

// What runs a server calls Linux by name, and then the plugin would compile nowhere else.
func TestThePluginDoesNotKnowHowAServerIsRun(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		switch name {
		case "toban.dev/internal/postgres", "toban.dev/internal/agent", "toban.dev/internal/work",
			"toban.dev/internal/cli/process":
			t.Errorf("it imports %s", name)
		}
	}
}
