package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// What is too large is in large.txt with its size, and may only get smaller: then its number there follows, until the
// line can go. Nothing is added there; what gets too large is divided.
func TestNothingLargeGrows(t *testing.T) {
	h, err := measure(os.DirFS("../.."), []string{"api", "cmd", "internal"})
	if err != nil {
		t.Fatal(err)
	}
	most := readLarge(t)
	for _, l := range h.large() {
		switch was, known := most[l.what]; {
		case !known:
			t.Errorf("%s: %d are too many: divide it", l.what, l.size)
		case l.size > was:
			t.Errorf("%s: %d are more than the %d that there were: divide it", l.what, l.size, was)
		case l.size < was:
			t.Errorf("%s: there are %d now: write that into large.txt instead of %d", l.what, l.size, was)
		}
		delete(most, l.what)
	}
	for what := range most {
		t.Errorf("%s: they are few enough now: take the line out of large.txt", what)
	}
}

// No limit is waived more than a few times: else it is none.
func TestFewAreLarge(t *testing.T) {
	const most = 5
	waived := map[string]int{}
	for what := range readLarge(t) {
		limit, _, _ := strings.Cut(what, " ")
		if waived[limit]++; waived[limit] > most {
			t.Errorf("the limit of %s is waived more than %d times", limit, most)
		}
	}
}

// The picture of docs/packages.md is that of today.
func TestThePictureIsCurrent(t *testing.T) {
	h, err := measure(os.DirFS("../.."), []string{"internal"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), h.mermaid()) {
		t.Errorf("docs/packages.md does not have what go run ./hack/house -graph draws:\n%s", h.mermaid())
	}
}

func readLarge(t *testing.T) map[string]int {
	t.Helper()
	file, err := os.Open("large.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		what, size, ok := strings.Cut(lines.Text(), ": ")
		n := 0
		if _, err := fmt.Sscan(size, &n); !ok || err != nil {
			t.Fatalf("large.txt has the line %q", lines.Text())
		}
		out[what] = n
	}
	return out
}
