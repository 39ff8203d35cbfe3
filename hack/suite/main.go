// Command suite runs the tests. It alone knows which there are, what runs each of them, and which part of the long ones
// is run when: no test is run by nobody.
//
//	suite ring NAME [FLAGS…]  the tests of a ring without the long stories, with more flags of go test; TOBAN_PART=1/2
//	                          runs the first half of them
//	suite turn N              a part of N whose turn it is, by the number of commits: 2/3 is the second of three
//	suite share [SHARE]       the share of the long stories that make test adds in CI, or one that is asked for, if it
//	                          is one
//	suite long SHARE RINGS    a share of the long stories: those that need no cluster (local) or one (cluster)
//	suite soak SHARE PIECES   a share of make soak, or all of it if SHARE is empty; with PIECES, a regular expression,
//	                          those of its pieces whose names match
//	suite list                all long stories and pieces of make soak, with their shares and last runs
//	suite ran COMMIT          records that CI was green for a commit, with the share it ran
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// So many shares there are of the long stories (make test has 40 minutes without them, and a quarter of an hour more
// with one in CI), and of make soak (under two hours each).
const (
	testShares = 12
	soakShares = 8
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	all, err := findTests(os.DirFS("."))
	if err != nil {
		return err
	}
	s := suite{all: all}
	verb := append(args, "", "", "")
	switch verb[0] { // these need no record
	case "ring":
		return s.ring(verb[1], os.Getenv(partVariable), args[min(2, len(args)):])
	case "turn":
		return turn(verb[1])
	}
	if s.last, err = committedRecord(); err != nil {
		return err
	}
	switch verb[0] {
	case "share":
		return s.share(verb[1])
	case "long":
		return s.long(verb[1], verb[2])
	case "soak":
		return s.soak(verb[1], verb[2])
	case "list":
		s.list()
		return nil
	case "ran":
		return s.landed(verb[1])
	}
	return fmt.Errorf("%q is nothing that it does: ring, turn, share, long, soak, list, ran", verb[0])
}

// suite is all tests, and when the long ones last ran.
type suite struct {
	all  []test
	last record
}

// partVariable is the part of a ring that is run on a slow machine, as 1/2. Nothing and 1/1 are all of it.
const partVariable = "TOBAN_PART"

func (s suite) ring(name, part string, flags []string) error {
	r, ok := ringNamed(name)
	if !ok {
		return fmt.Errorf("no ring is called %q", name)
	}
	sh, err := parseShare(cmp.Or(part, "1/1"))
	if err != nil {
		return fmt.Errorf("%s: %w", partVariable, err)
	}
	chosen := r.part(s.all, sh)
	if len(chosen) > 0 {
		flags = slices.Concat(r.slow, flags)
	}
	return execute(r.command(s.all, chosen, flags))
}

// turn prints the part of so many whose turn it is. Each commit has the next.
func turn(parts string) error {
	of, err := strconv.Atoi(parts)
	if err != nil || of < 1 {
		return fmt.Errorf("%q is no number of parts", parts)
	}
	commits, err := countCommits("HEAD")
	if err != nil {
		return err
	}
	fmt.Println(share{commits%of + 1, of})
	return nil
}

// share prints the share that is asked for, or else that of CI.
func (s suite) share(asked string) error {
	if asked == "" {
		commits, err := commitsSince(ranFile, "HEAD")
		if err != nil {
			return err
		}
		fmt.Println(next(stories(s.all), testShares, s.last, commits))
		return nil
	}
	sh, err := parseShare(asked)
	if err != nil {
		return err
	}
	if len(shareOut(stories(s.all), sh.of, s.last)[sh.number-1]) == 0 {
		return fmt.Errorf("no long story is in the share %s: there are %d", sh, len(stories(s.all)))
	}
	fmt.Println(sh)
	return nil
}

// long runs the long stories of a share that need a cluster, or those that need none.
func (s suite) long(of, where string) error {
	sh, err := parseShare(of)
	if err != nil {
		return err
	}
	wanted, ok := map[string]string{"local": "", "cluster": up}[where]
	if !ok {
		return fmt.Errorf("%q is neither local nor cluster", where)
	}
	part := shareOut(stories(s.all), sh.of, s.last)[sh.number-1]
	return s.runStories(needs(part, wanted))
}

// soak runs a share of what takes too long for make test: what needs no cluster or must have none, and then the rest.
func (s suite) soak(of, names string) error {
	pieces := soak(s.all)
	if of != "" {
		sh, err := parseShare(of)
		if err != nil {
			return err
		}
		pieces = shareOut(pieces, sh.of, s.last)[sh.number-1]
	}
	pieces, err := called(pieces, names)
	if err != nil {
		return err
	}
	fmt.Printf("%d pieces, about %s\n", len(pieces), s.last.costs(pieces))
	var failed []error
	for _, state := range []string{down, "", up} {
		failed = append(failed, s.runAll(needs(pieces, state), state))
	}
	return errors.Join(failed...)
}

// called are the pieces whose names match a regular expression: at least one.
func called(pieces []piece, names string) ([]piece, error) {
	expression, err := regexp.Compile(names)
	if err != nil {
		return nil, fmt.Errorf("PIECES=%q: %w", names, err)
	}
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool { return !expression.MatchString(p.name) })
	if len(pieces) == 0 {
		return nil, fmt.Errorf("no piece of it is called %q: go run ./hack/suite list shows all", names)
	}
	return pieces, nil
}

// runAll runs pieces that need the same of the cluster.
func (s suite) runAll(pieces []piece, state string) error {
	if len(pieces) == 0 {
		return nil
	}
	if state == up {
		stop, err := startCluster()
		if err != nil {
			return err
		}
		defer stop()
	}
	var failed []error
	for _, p := range pieces {
		if p.story == nil {
			failed = append(failed, s.runScript(p))
		}
	}
	told := slices.DeleteFunc(pieces, func(p piece) bool { return p.story == nil })
	return errors.Join(append(failed, s.runStories(told))...)
}

func needs(pieces []piece, cluster string) []piece {
	return slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool { return p.cluster != cluster })
}

func (s suite) list() {
	test, soaked := shareOut(stories(s.all), testShares, s.last), shareOut(soak(s.all), soakShares, s.last)
	of := func(parts [][]piece, name string) string {
		i := slices.IndexFunc(parts, func(part []piece) bool {
			return slices.ContainsFunc(part, func(p piece) bool { return p.name == name })
		})
		if i < 0 {
			return ""
		}
		return share{i + 1, len(parts)}.String()
	}
	for _, p := range soak(s.all) {
		ran, on := p.last(s.last), "never"
		if !ran.on.IsZero() {
			on = ran.on.Format(day) + " " + ran.commit
		}
		fmt.Printf("%-80s %5d s  test %-4s soak %-4s %s\n", p.name, ran.seconds, of(test, p.name),
			of(soaked, p.name), on)
	}
	fmt.Print(strings.Join(strings.SplitAfter(s.last.text(s.all), "\n")[:3+testShares+soakShares], ""))
}
