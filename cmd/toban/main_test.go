package main

import "testing"

// A person who calls kubectl toban has no use for what runs in Pods.
func TestAPluginHasTheVerbsForPeopleOnly(t *testing.T) {
	for program, want := range map[string]map[string]bool{
		"/toban": {
			"status": true, "switchover": true, "promote": true, "backup": true, "restore": true, "undelete": true,
			"operator": true, "agent": true, "install": true, "init": true, "archive": true,
		},
		"/usr/local/bin/kubectl-toban": {
			"status": true, "switchover": true, "backup": true, "restore": true, "undelete": true, "operator": false,
			"agent": false, "install": false, "init": false, "archive": false,
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

// The verb of a Pod has the same name as one for people, one level deeper.
func TestTheVerbsOfPodsStayWhereJobsCallThem(t *testing.T) {
	for _, verb := range []string{"take", "restore", "verify", "inspect"} {
		c, rest, err := command("/toban").Find([]string{"backup", verb})
		if err != nil || len(rest) > 0 || c.Name() != verb || c.Flags().Lookup("settings") == nil {
			t.Errorf("toban backup %s is %v, %v", verb, c.UseLine(), err)
		}
		if c, _, _ := command("kubectl-toban").Find([]string{"backup", verb}); c.Name() != "backup" {
			t.Errorf("a person sees %s", c.UseLine())
		}
	}
}
