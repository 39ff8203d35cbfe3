// Command house measures how the code is divided: lines by package, functions, methods and fields by type, files by
// folder, and imports between packages. What grows unseen is seen there.
//
//	house            the numbers, for people
//	house -json      the same for programs
//	house -graph     the imports between the rooms (internal/ROOM) as a picture for Mermaid
//	house -only P    of packages whose path contains P alone
//	house -core      the lines of code of each annex, and of the core
//	house -topics    the topics of a SampleDB's work by their folders, with the files of each
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	asJSON := flag.Bool("json", false, "write the numbers as JSON")
	graph := flag.Bool("graph", false, "write the imports between rooms as a picture for Mermaid")
	only := flag.String("only", "", "only packages whose path contains this")
	topics := flag.Bool("topics", false, "list the topics of a SampleDB's work, with the files of each")
	core := flag.Bool("core", false, "list the lines of code of each annex, and of the core")
	flag.Parse()
	tell := house.tell
	switch {
	case *asJSON:
		tell = house.json
	case *graph:
		tell = house.graph
	case *core:
		tell = house.core
	case *topics:
		tell = house.topics
	}
	if err := run(os.Stdout, *only, tell); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, only string, tell func(house, io.Writer) error) error {
	h, err := measure(os.DirFS("."), []string{"api", "cmd", "internal"})
	if err != nil {
		return err
	}
	h.Packages = slices.DeleteFunc(h.Packages, func(p pkg) bool { return !strings.Contains(p.Path, only) })
	return tell(h, out)
}

func (h house) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(h)
}

func (h house) graph(out io.Writer) error {
	_, err := io.WriteString(out, h.mermaid())
	return err
}

// topics prints each topic with its folder and files, where a change of it begins.
func (h house) topics(out io.Writer) error {
	for _, p := range h.Packages {
		folder, is := strings.CutPrefix(p.Path+"/", "internal/operator/sampledb/")
		if !is {
			continue
		}
		for _, t := range p.Types {
			if name, is := strings.CutSuffix(t.Name, "Topic"); is {
				fmt.Fprintf(out, "%-10s %-12s %2d methods  %s\n", folder, name, t.Methods, strings.Join(t.files, " "))
			}
		}
	}
	return nil
}

// What a type or a folder has at most. What is larger is in large.txt, and may not grow.
const (
	manyMethods = 40
	manyFields  = 25
	manyFiles   = 40
)

// large is what has more of something than it should.
type large struct {
	what string
	size int
}

// large are the types and folders that are too large, in the order of their packages.
func (h house) large() (out []large) {
	add := func(what string, size, most int) {
		if size > most {
			out = append(out, large{what, size})
		}
	}
	for _, p := range h.Packages {
		for _, t := range p.Types {
			add(fmt.Sprintf("methods of %s.%s", p.Path, t.Name), t.Methods, manyMethods)
			if !strings.HasPrefix(p.Path, "api/") { // the fields of the kinds are for users
				add(fmt.Sprintf("fields of %s.%s", p.Path, t.Name), t.Fields, manyFields)
			}
		}
		add("files in "+p.Path, p.Files, manyFiles)
	}
	return out
}

// tell prints the numbers: each package, what is large in it, and the sums.
func (h house) tell(out io.Writer) error {
	fmt.Fprintf(out, "%-46s %6s %7s %6s %6s\n", "package", "lines", "files", "funcs", "imports")
	for _, p := range h.Packages {
		fmt.Fprintf(out, "%-46s %6d %7d %6d %6d\n", p.Path, p.Lines, p.Files, p.Functions, len(p.Imports))
	}
	fmt.Fprintln(out)
	for _, l := range h.large() {
		fmt.Fprintf(out, "%s: %d\n", l.what, l.size)
	}
	s := h.sum()
	fmt.Fprintf(out, "\n%d packages, %d lines of code (%d in internal), %d functions (median %d lines, 99%% up to %d, "+
		"longest %d), %d types\n%d imports between packages, %d between rooms of internal\n",
		len(h.Packages), s.lines, s.internal, s.functions, s.median, s.p99, s.longest, s.types, s.arrows,
		len(h.rooms()))
	return nil
}

// sums are those of all packages.
type sums struct{ lines, internal, functions, median, p99, longest, types, arrows int }

func (h house) sum() (s sums) {
	var lengths []int
	for _, p := range h.Packages {
		s.lines += p.Lines
		if strings.HasPrefix(p.Path, "internal") {
			s.internal += p.Lines
		}
		s.functions += p.Functions
		s.types += len(p.Types)
		s.arrows += len(p.Imports)
		lengths = append(lengths, p.lengths...)
	}
	slices.Sort(lengths)
	if n := len(lengths); n > 0 {
		s.median, s.p99, s.longest = lengths[n/2], lengths[n*99/100], lengths[n-1]
	}
	return s
}

// arrow is an import of a room by another, by so many packages.
type arrow struct {
	from, to string
	packages int
}

// room is the folder below internal in which a package is.
func room(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] != "internal" || len(parts) == 1 {
		return parts[0]
	}
	return parts[1]
}

// rooms are the imports between the rooms of internal.
func (h house) rooms() (arrows []arrow) {
	for _, p := range h.Packages {
		for _, i := range p.Imports {
			from, to := room(p.Path), room(i)
			if from == to || !strings.HasPrefix(p.Path, "internal/") || !strings.HasPrefix(i, "internal/") {
				continue
			}
			at := slices.IndexFunc(arrows, func(a arrow) bool { return a.from == from && a.to == to })
			if at < 0 {
				arrows = append(arrows, arrow{from, to, 0})
				at = len(arrows) - 1
			}
			arrows[at].packages++
		}
	}
	return arrows
}

func (h house) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, a := range h.rooms() {
		fmt.Fprintf(&b, "  %s --> %s\n", a.from, a.to)
	}
	return b.String()
}
