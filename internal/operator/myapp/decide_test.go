package myapp

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/myapp/v1"
)

func TestDecide(t *testing.T) {
	good := database{wanted: true, found: true, usable: true, ready: true}
	plain := func(modify ...func(*view)) view {
		v := view{image: "nginx:1.26"}
		for _, m := range modify {
			m(&v)
		}
		return v
	}
	update := func(modify ...func(*view)) view {
		return plain(append([]func(*view){func(v *view) { v.needed, v.database = true, good }}, modify...)...)
	}
	job := func(name string, state jobState, wanted, attempt bool) func(*view) {
		return func(v *view) {
			v.jobs = append(v.jobs,
				jobView{name: name, state: state, wanted: wanted, attempt: attempt, message: "words of " + name})
		}
	}
	backup := func(state backupState) func(*view) {
		return func(v *view) { v.backup = backupView{wanted: true, state: state, message: "the backup's words"} }
	}
	first := func(v *view) { v.first = true }
	missing := func(v *view) { v.missing = "ConfigMap a" }
	wantsDB := func(v *view) { v.database = database{wanted: true, why: "it is being set up"} }
	foundDB := func(v *view) { v.database = database{wanted: true, found: true, why: "it is being set up"} }
	usableDB := func(v *view) {
		v.database = database{wanted: true, found: true, usable: true, why: "one of three instances is away"}
	}
	lingering := func(v *view) { v.pod = "x-migrate-0" }
	for name, c := range map[string]struct {
		view   view
		action Action
		reason string
	}{
		"nothing is needed": {plain(), ActionRoll, v1.ReasonMigrated},
		"the first Pods":    {plain(first), ActionRoll, v1.ReasonMigrated},
		"the first Pods need a database that is not there": {
			plain(first, wantsDB), ActionHold, v1.ReasonDatabaseNotFound,
		},
		"the first Pods wait until it takes connections": {
			plain(first, foundDB), ActionHold, v1.ReasonDatabaseNotReady,
		},
		"the first Pods do not wait for its standbys": {
			plain(first, usableDB), ActionRoll, v1.ReasonMigrated,
		},
		"later ones do not wait: what runs needs it just as much": {plain(wantsDB), ActionRoll, v1.ReasonMigrated},
		"a ConfigMap is missing": {
			plain(missing), ActionHold, v1.ReasonConfigNotFound,
		},

		"a migration begins":              {update(), ActionMigrate, v1.ReasonMigrating},
		"before the first Pods too":       {update(first), ActionMigrate, v1.ReasonMigrating},
		"its configuration is missing":    {update(missing), ActionHold, v1.ReasonConfigNotFound},
		"its database is not there":       {update(wantsDB), ActionHold, v1.ReasonDatabaseNotFound},
		"its database is not ready":       {update(foundDB), ActionHold, v1.ReasonDatabaseNotReady},
		"its database has lost a standby": {update(usableDB), ActionHold, v1.ReasonDatabaseNotReady},
		"it runs":                         {update(job("a", jobRunning, true, true)), ActionHold, v1.ReasonMigrating},
		"it runs, and its database has trouble": {
			update(job("a", jobRunning, true, true), foundDB), ActionHold, v1.ReasonMigrating,
		},
		"it runs as it was made before the spec was mended": {
			update(job("a", jobRunning, true, false)), ActionHold, v1.ReasonMigrating,
		},
		"it has succeeded": {update(job("a", jobComplete, true, true)), ActionRoll, v1.ReasonMigrated},
		"it has succeeded as it was made before": {
			update(job("a", jobComplete, true, false)), ActionRoll, v1.ReasonMigrated,
		},
		"it has succeeded, whatever has become of the database since": {
			update(job("a", jobComplete, true, true), wantsDB), ActionRoll, v1.ReasonMigrated,
		},
		"it has succeeded, but its configuration is gone": {
			update(job("a", jobComplete, true, true), missing), ActionHold, v1.ReasonConfigNotFound,
		},
		"it has failed": {update(job("a", jobFailed, true, true)), ActionHold, v1.ReasonMigrationFailed},
		"it has failed, and the database is gone": {
			update(job("a", jobFailed, true, true), wantsDB), ActionHold, v1.ReasonMigrationFailed,
		},
		"it has failed, and was mended since": {
			update(job("a", jobFailed, true, false)), ActionMigrate, v1.ReasonMigrating,
		},
		"it has failed before it succeeded": {
			update(job("a", jobFailed, true, true), job("b", jobComplete, true, false)), ActionRoll, v1.ReasonMigrated,
		},
		"one to another version has succeeded": {
			update(job("a", jobComplete, false, false)), ActionMigrate, v1.ReasonMigrating,
		},
		"one to another version has failed": {
			update(job("a", jobFailed, false, false)), ActionMigrate, v1.ReasonMigrating,
		},
		"one to another version runs": {
			update(job("a", jobRunning, false, false)), ActionHold, v1.ReasonMigrating,
		},
		"the Pod of one that was stopped has not ended": {update(lingering), ActionHold, v1.ReasonMigrating},
		"it has failed, and another one still runs": {
			update(job("a", jobFailed, true, true), job("b", jobRunning, false, false)), ActionHold, v1.ReasonMigrating,
		},

		"a backup comes first": {update(backup(backupNone)), ActionBackup, v1.ReasonBackingUp},
		"a backup waits for the database too": {
			update(backup(backupNone), foundDB), ActionHold, v1.ReasonDatabaseNotReady,
		},
		"the backup is under way": {update(backup(backupRunning)), ActionHold, v1.ReasonBackingUp},
		"the backup has failed":   {update(backup(backupFailed)), ActionHold, v1.ReasonBackupFailed},
		"the backup is complete":  {update(backup(backupComplete)), ActionMigrate, v1.ReasonMigrating},
		"a backup that fails late does not stop what runs": {
			update(backup(backupFailed), job("a", jobRunning, true, true)), ActionHold, v1.ReasonMigrating,
		},
		"a backup is not taken beside another migration": {
			update(backup(backupNone), job("a", jobRunning, false, false)), ActionHold, v1.ReasonMigrating,
		},
		"after a failure another backup is not taken": {
			update(backup(backupNone), job("a", jobFailed, true, true)), ActionHold, v1.ReasonMigrationFailed,
		},
		"an update that was taken back needs nothing": {
			plain(job("a", jobFailed, false, false)), ActionRoll, v1.ReasonMigrated,
		},
		"one that was taken back does not wait for its Job": {
			plain(job("a", jobRunning, false, false)), ActionRoll, v1.ReasonMigrated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(c.view)
			if got.Action != c.action || got.Reason != c.reason {
				t.Errorf("got %+v, want %s for %s", got, c.action, c.reason)
			}
			if got.Message == "" {
				t.Error("it does not say why")
			}
		})
	}
}

func TestADecisionHasTheWordsOfWhatKeepsIt(t *testing.T) {
	v := view{needed: true, database: database{wanted: true, found: true, why: "PostgreSQL shop is being set up"}}
	if got := decide(v).Message; !strings.Contains(got, v.database.why) {
		t.Errorf("it says %q", got)
	}
	v.jobs = []jobView{{name: "a", wanted: true, attempt: true, state: jobFailed, message: "no table"}}
	if got := decide(v).Message; !strings.Contains(got, "no table") {
		t.Errorf("it says %q", got)
	}
}

func TestObsoleteJobs(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC) }
	jobs := []jobView{
		{name: "old", created: at(1), state: jobComplete},
		{name: "older", created: at(0), state: jobComplete},
		{name: "failed", created: at(2), state: jobFailed},
		{name: "running", created: at(3), state: jobRunning},
	}
	for name, c := range map[string]struct {
		view view
		want string
	}{
		"nothing is needed: the newest that has succeeded stays, for its log": {
			view{jobs: jobs}, "failed older running",
		},
		"an update: what runs is not stopped": {view{needed: true, jobs: jobs}, "failed old older"},
		"an update: its own failure stays": {view{needed: true, jobs: []jobView{
			{name: "a", state: jobFailed, wanted: true, attempt: true},
			{name: "b", state: jobFailed, wanted: true}}}, "b"},
		"an update: its own success stays, also as it was made before": {view{needed: true, jobs: []jobView{
			{name: "a", state: jobComplete, wanted: true}, {name: "b", state: jobFailed, attempt: true}}}, ""},
		"none": {view{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := obsolete(c.view)
			slices.Sort(got)
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("to go: %q, want %q", text, c.want)
			}
		})
	}
}
