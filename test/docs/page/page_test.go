package page_test

import (
	"slices"
	"strings"
	"testing"

	"toban.dev/test/docs/page"
)

const example = "Text.\n\n```\nkubectl get pods\n```\n\n```\nNAME   READY\na      1/1\n```\n\n" +
	"- In a list:\n\n  <!-- not run: it deletes a node -->\n  ```bash\n  make down\n    more\n  ```\n\n" +
	"```console\n$ kubectl toban psql db\ndb=# SELECT 1;\n 1\n$ kubectl get pods\nNAME   READY\n```\n\n" +
	"```yaml\na: b\n```\n"

func TestBlocksAndStepsOfAPage(t *testing.T) {
	all, err := page.Blocks(example)
	if err != nil || len(all) != 5 {
		t.Fatalf("there are %d blocks, %v", len(all), err)
	}
	want := [][]page.Step{
		{{Command: "kubectl get pods\n"}},
		nil,
		{{Command: "make down\n  more\n"}},
		{
			{Command: "kubectl toban psql db\n", Input: "SELECT 1;\n", Output: " 1\n"},
			{Command: "kubectl get pods\n", Output: "NAME   READY\n"},
		},
		nil,
	}
	for i, b := range all {
		if got := b.Steps(); !slices.Equal(got, want[i]) {
			t.Errorf("the block of line %d has the steps %q, want %q", b.Line, got, want[i])
		}
	}
	if all[2].NotRun != "it deletes a node" || all[2].Line != 15 || all[3].NotRun != "" {
		t.Errorf("the blocks are %+v", all)
	}
	if got := page.Heads(all[1].Text); !slices.Equal(got, []string{"NAME READY"}) {
		t.Errorf("the headings are %q", got)
	}
}

func TestBadPagesAreRefused(t *testing.T) {
	for what, text := range map[string]string{
		"a block without an end":     "```\nkubectl get pods\n",
		"a reason without its block": "<!-- not run: it is late -->\n\nText.\n",
	} {
		if _, err := page.Blocks(text); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
