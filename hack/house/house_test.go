package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const code = `// Package a is an example.
package a

import (
	"fmt"

	"toban.dev/internal/b"
)

// T is a type.
type T struct {
	x, y int
	b.Base
}

type list[E any] []E

func (l list[E]) len() int { return len(l) }

// say says it.
func (t *T) say() string {
	// why
	return fmt.Sprint(t.x) + ` + "`two\nlines`" + `
}
`

func TestMeasure(t *testing.T) {
	h, err := measure(fstest.MapFS{
		"internal/a/a.go":          {Data: []byte(code)},
		"internal/a/a_test.go":     {Data: []byte("package a\n")},
		"internal/a/testdata/x.go": {Data: []byte("no Go")},
		"internal/b/b.go":          {Data: []byte("package b\n\ntype Base struct{}\n")},
	}, []string{"internal"})
	if err != nil {
		t.Fatal(err)
	}
	a := h.Packages[0]
	if a.Path != "internal/a" || a.Lines != 15 || a.Files != 1 || a.Functions != 2 {
		t.Errorf("measured %+v", a)
	}
	if want := []kind{{"T", 1, 3, nil}, {"list", 1, 0, nil}}; !slices.EqualFunc(a.Types, want, sameKind) {
		t.Errorf("types %v, want %v", a.Types, want)
	}
	if got := h.mermaid(); got != "flowchart TD\n  a --> b\n" {
		t.Errorf("the picture is %q", got)
	}
	var out bytes.Buffer
	if err := h.tell(&out); err != nil {
		t.Fatal(err)
	}
	if want := "2 packages, 17 lines of code (17 in internal), 2 functions"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in %s", want, out.String())
	}
}

func sameKind(a, b kind) bool {
	return a.Name == b.Name && a.Methods == b.Methods && a.Fields == b.Fields
}

func TestTheTopicsHaveTheirFiles(t *testing.T) {
	const folder, head = "internal/operator/sampledb/", "package sampledb\n"
	const below, belowHead = folder + "below/", "package below\n"
	h, err := measure(fstest.MapFS{
		folder + "a.go":       {Data: []byte(head + "type aTopic struct{}\nfunc (aTopic) x() {}\n")},
		folder + "b.go":       {Data: []byte(head + "func (*aTopic) y() {}\n")},
		below + "c.go":        {Data: []byte(belowHead + "type bTopic struct{}\nfunc (bTopic) x() {}\n")},
		"internal/other/d.go": {Data: []byte("package other\ntype cTopic struct{}\n")},
	}, []string{"internal"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	want := "           a             2 methods  a.go b.go\nbelow/     b             1 methods  c.go\n"
	if err := h.topics(&out); err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
}
