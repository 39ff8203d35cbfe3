package main

import "testing"

// A person who calls kubectl toban has no use for what runs in Pods.
func TestAPluginHasTheVerbsForPeopleOnly(t *testing.T) {
	for program, want := range map[string]map[string]bool{
		"/toban":                       {"status": true, "switchover": true, "backup": true, "operator": true, "agent": true, "install": true, "init": true, "archive": true},
		"/usr/local/bin/kubectl-toban": {"status": true, "switchover": true, "backup": true, "operator": false, "agent": false, "install": false, "init": false, "archive": false},
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
