package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ask runs the page's own function with the page's own index, as a browser does: both are loaded as scripts.
const ask = `
const fs = require('fs'), vm = require('vm');
for (const file of ['search-index.js', 'search.js']) vm.runInThisContext(fs.readFileSync(file, 'utf8'));
const hits = JSON.parse(process.argv[1]).map((query) => tobanFind(tobanIndex, query));
process.stdout.write(JSON.stringify(hits));
`

type hit struct{ Target, Page, Title, Near string }

func TestTheSearchFinds(t *testing.T) {
	// What is searched for, and a place that has to be among the first ten.
	wanted := map[string]string{
		"switchover": "failover.html#switchover",
		"SWITCHOVER": "failover.html#switchover",
		"pg_hba":     "howto.html#connect",
		"復元":         "ja.html#バックアップと復元",
		// A line of the page ends in the middle of this.
		"元に戻せます。これらは":           "ja.html#toban",
		"フェイルオーバー":              "ja.html#フェイルオーバー",
		"undelete":              "reference/kubectl-toban.html#kubectl-toban-undelete",
		"spec.backup.retention": "reference/sampledb.html#specbackupretention",
		"drain node":            "failover.html#draining-a-node",
		"one table":             "databaserestore.html#one-table-back-databaserestore",
		"rotate password":       "howto.html#passwords-keys-and-certificates",
		"password rotation":     "rotation.html#the-password-in-name-app",
	}
	queries := make([]string, 0, len(wanted))
	for query := range wanted {
		queries = append(queries, query)
	}
	for i, hits := range search(t, queries) {
		first := hits[:min(len(hits), 10)]
		want := wanted[queries[i]]
		if !slices.ContainsFunc(first, func(h hit) bool { return h.Target == want }) {
			t.Errorf("%s does not find %s among the first, but %+v", queries[i], want, first)
		}
	}
}

func TestTheSearchFindsNothingForNothing(t *testing.T) {
	for i, hits := range search(t, []string{"", "   ", "switchover nosuchword"}) {
		if len(hits) > 0 {
			t.Errorf("query %d finds %+v", i, hits[0])
		}
	}
}

func TestAHitShowsTheTextAroundTheWord(t *testing.T) {
	for _, hits := range search(t, []string{"pg_rewind"}) {
		if len(hits) == 0 {
			t.Fatal("nothing was found")
		}
		for _, h := range hits {
			if !strings.Contains(strings.ToLower(h.Near+h.Title), "pg_rewind") {
				t.Errorf("%s shows %q", h.Target, h.Near)
			}
		}
	}
}

func search(t *testing.T, queries []string) [][]hit {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"search-index.js", "search.js"} {
		if err := os.WriteFile(filepath.Join(folder, name), made[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "-e", ask, string(asked))
	node.Dir = folder
	out, err := node.Output()
	if err != nil {
		t.Fatalf("node, of Debian's nodejs: %v", err)
	}
	var all [][]hit
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
