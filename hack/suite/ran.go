package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ranFile is the record of when each piece last ran without a failure. It is part of the repository: what it says in a
// commit decides which share that commit is tested with.
const ranFile = "hack/suite/ran.tsv"

// ran is the last run of a piece in which nothing failed.
type ran struct {
	seconds int
	on      time.Time // when it began, in UTC
	commit  string
}

// record has them by the pieces' names.
type record map[string]ran

const day = time.DateOnly

// recordBegins is how the file begins. One that does not is cut off.
const recordBegins = "# When each piece of make test's long stories and of make soak last ran without a failure:\n"

// parseRecord reads lines of a piece, its seconds, a time and a commit. Lines that begin with # say more to people.
func parseRecord(text string) (record, error) {
	r := record{}
	if !strings.HasPrefix(text, recordBegins) {
		return nil, fmt.Errorf("%s does not begin as the record does: bring back its last version", ranFile)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("%s: %q is not a piece, seconds, a day and a commit", ranFile, line)
		}
		seconds, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", ranFile, line, err)
		}
		on, err := time.Parse(time.RFC3339, f[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", ranFile, line, err)
		}
		r[f[0]] = ran{seconds, on, f[3]}
	}
	return r, nil
}

func readRecord() (record, error) {
	text, err := os.ReadFile(ranFile)
	if err != nil {
		return nil, err
	}
	return parseRecord(string(text))
}

// committedRecord is the record as the commit has it that is checked out. The shares go by it: they must not change
// while one of them is run and writes what it has done.
func committedRecord() (record, error) {
	text, err := output("git", "show", "HEAD:"+ranFile)
	if err != nil {
		return nil, err
	}
	return parseRecord(text)
}

// note remembers a run. How long a piece takes changes from run to run: a time that is not far from the former one
// stays, so that the shares stay too.
func (r record) note(name string, took ran) {
	if before, ok := r[name]; ok {
		if math.Abs(float64(took.seconds-before.seconds)) < math.Max(10, 0.5*float64(before.seconds)) {
			took.seconds = before.seconds
		}
		if took.on.Before(before.on) {
			return
		}
	}
	r[name] = took
}

// since is when the piece ran that ran longest ago; zero if one never ran.
func (r record) since(pieces []piece) time.Time {
	return slices.MinFunc(pieces, func(a, b piece) int { return r[a.name].on.Compare(r[b.name].on) }).last(r).on
}

func (p piece) last(r record) ran { return r[p.name] }

// text is the file: for people, when each share last was without a failure, and then all pieces that there are.
func (r record) text(all []test) string {
	var b strings.Builder
	b.WriteString(recordBegins +
		"# the piece, its seconds, when it began, the commit. " +
		"Written by hack/suite (CONTRIBUTING.md, Long stories).\n#\n")
	pieces := soak(all)
	r.tellShares(&b, "make test", stories(all), testShares)
	r.tellShares(&b, "make soak", pieces, soakShares)
	known := record{}
	for _, p := range pieces { // pieces that are no more are forgotten
		if last, ok := r[p.name]; ok {
			known[p.name] = last
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		last := known[name]
		fmt.Fprintf(&b, "%s\t%d\t%s\t%s\n", name, last.seconds, last.on.UTC().Format(time.RFC3339), last.commit)
	}
	return b.String()
}

func (r record) tellShares(b *strings.Builder, what string, pieces []piece, shares int) {
	for i, part := range shareOut(pieces, shares, r) {
		never := slices.DeleteFunc(slices.Clone(part), func(p piece) bool { return !p.last(r).on.IsZero() })
		first := slices.MinFunc(part, func(a, b piece) int { return a.last(r).on.Compare(b.last(r).on) }).last(r)
		said := fmt.Sprintf("all since %s, the first at %s", first.on.Format(day), first.commit)
		if len(never) > 0 {
			said = fmt.Sprintf("%d of %d have no run yet", len(never), len(part))
		}
		fmt.Fprintf(b, "# %s SHARE=%s: %s of work; %s\n", what, share{i + 1, shares}, r.costs(part), said)
	}
}

// write keeps what ran since the file was read. Another run may have written it meanwhile: what that has is kept.
func writeRecord(all []test, took map[string]ran) error {
	r, err := readRecord()
	if err != nil {
		return err
	}
	for name, last := range took {
		r.note(name, last)
	}
	// Whoever is killed meanwhile leaves the former one.
	if err := os.WriteFile(ranFile+".new", []byte(r.text(all)), 0o600); err != nil {
		return err
	}
	return os.Rename(ranFile+".new", ranFile)
}

// passed reads what hack/gotest wrote of the tests that passed: a package, a test and its seconds a line.
func passed(text string, at ran) (map[string]ran, error) {
	took := map[string]ran{}
	for line := range strings.Lines(text) {
		var pkg, name string
		var seconds float64
		if _, err := fmt.Sscan(line, &pkg, &name, &seconds); err != nil {
			return nil, fmt.Errorf("what hack/gotest wrote: %q: %w", line, err)
		}
		_, folder, _ := strings.Cut(pkg, "/") // the module's name is its host alone
		last := at
		last.seconds = int(math.Ceil(seconds))
		took[cmp.Or(folder, ".")+" "+name] = last
	}
	return took, nil
}
