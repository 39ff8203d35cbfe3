package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a view with the one that is on record.
func golden(t *testing.T, name string, view any) {
	t.Helper()
	got, err := json.MarshalIndent(view, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the view is not that of %s; with -update it is written anew:\n%s", path, got)
	}
}

func TestTheFleetIsAsOnRecord(t *testing.T) { golden(t, "fleet", Fleet(fleetOf())) }

func TestADatabaseIsAsOnRecord(t *testing.T) {
	for name, change := range map[string]func(*v1.SampleDB){"all": withAll, "leaderless": leaderless} {
		db := database("shop", "orders", change)
		golden(t, "database-"+name, DatabaseOf(&db, seenOf(db)))
	}
}

// What needs somebody is first, and a database that is as somebody wants it is not urgent.
func TestWhatNeedsSomebodyIsFirst(t *testing.T) {
	var got []string
	for _, row := range Fleet(fleetOf()) {
		got = append(got, row.Name+" "+row.Level)
	}
	want := []string{"carts down", "typo act", "orders act", "old warn", "archive busy", "posts well", "alone well",
		"tiny off"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// Why nobody is promoted is told with what to do, and only while nobody leads.
func TestItIsToldWhyNobodyIsPromoted(t *testing.T) {
	db := database("shop", "orders", leaderless)
	view := DatabaseOf(&db, Seen{})
	if c := view.Unpromoted; c == nil || c.Reason != "NoQuorum" || !strings.Contains(c.Message, "2 have to") ||
		!strings.Contains(c.Todo, "toban.dev/sampledb=orders") {
		t.Errorf("it says %+v", c)
	}
	db = database("shop", "orders")
	if c := DatabaseOf(&db, Seen{}).Unpromoted; c != nil {
		t.Errorf("there is a primary, and it says %+v", c)
	}
}

// The Pods are newer than the status: one that is gone leads nobody, whatever the status says.
func TestAnInstanceWithoutAPodHasNoRole(t *testing.T) {
	db := database("shop", "orders")
	seen := seenOf(db)
	seen.Pods = seen.Pods[1:]
	if n := pictureOf(&db, seen).Nodes[0]; n.Role != "" || n.Ready || n.Pod != "Absent" {
		t.Errorf("its Pod is gone, and it is %+v", n)
	}
	if n := pictureOf(&db, Seen{}).Nodes[0]; n.Role != "primary" {
		t.Errorf("Pods can't be listed, and it is %+v", n)
	}
}

// Every reason that keeps a condition from being true says what to do, in the words of the reference.
func TestEveryReasonSaysWhatToDo(t *testing.T) {
	if len(todo) < 20 {
		t.Fatalf("there are only %d conditions", len(todo))
	}
	for condition, reasons := range todo {
		for reason, text := range reasons {
			if text == "" {
				t.Errorf("%s %s says nothing", condition, reason)
			}
		}
	}
	if text := todoOf("Ready", "ParameterRejected", "shop"); !strings.Contains(text, "kubectl edit sampledb shop") {
		t.Errorf("Ready has the reason of another condition, and it says %q", text)
	}
}

// The ways back are the commands and manifests of docs/restore.md, with words that a shell takes as they are meant.
func TestTheWaysBackCanBeCopied(t *testing.T) {
	db := database("shop", "orders")
	clone := func(db *v1.SampleDB, into, to string) (*v1.SampleDB, error) {
		made := database(db.Namespace, into)
		made.Spec.RestoreFrom = &v1.RestoreSpec{SampleDB: db.Name, Target: &v1.RestoreTarget{Time: to}}
		return &made, nil
	}
	asked := Asked{Database: &db, To: "2026-11-21T12:15:00+09:00", Table: "it's"}
	ways, err := waysOf(asked, []string{"--context", "my cluster"}, clone)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "ways", ways)
	if want := `kubectl toban restore orders --table 'it'\''s' --to 2026-11-21T12:15:00+09:00 --namespace shop ` +
		`--context 'my cluster'`; ways.Table.Command != want {
		t.Errorf("the command is %s, want %s", ways.Table.Command, want)
	}
	for _, wrong := range []string{"", "yesterday", "2026-11-21T12:15:00"} {
		if _, err := waysOf(Asked{Database: &db, To: wrong}, nil, clone); err == nil {
			t.Errorf("%q is taken as a moment", wrong)
		}
	}
	db.Name = strings.Repeat("a", 40)
	if into := (Asked{Database: &db}).into(); len(into) > 40 || !strings.HasSuffix(into, "-restored") {
		t.Errorf("the new SampleDB is called %s", into)
	}
}

// What an event and the status both tell is told once; what only the status remembers is told too.
func TestTheTimelineTellsEverythingOnce(t *testing.T) {
	db := database("shop", "orders")
	seen := seenOf(db)
	first := seen.Events[0].DeepCopy()
	first.Reason, first.CreationTimestamp = "Initialized", after(time.Minute+time.Second)
	seen.Events = append(seen.Events, *first)
	count := map[string]int{}
	for _, m := range timelineOf(&db, seen) {
		count[m.Reason]++
	}
	if count["Initialized"] != 1 || count["Created"] != 1 || count["Completed"] != 2 || count["PrimaryChanged"] != 1 {
		t.Errorf("it tells %v", count)
	}
}

// The present window goes on to where the archive is; the ones of former versions are before it.
func TestTheWindowsAreInTheOrderOfTime(t *testing.T) {
	db := database("shop", "orders", withAll)
	w := windowsOf(db.Status.Backup)
	if len(w) != 2 || w[0].Version != 16 || !w[1].GoesOn || !w[1].To.Equal(afterp(48*time.Hour)) {
		t.Errorf("the windows are %+v", w)
	}
	if w := windowsOf(nil); len(w) != 0 {
		t.Errorf("there is no archive, and the windows are %+v", w)
	}
}
