package major

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// missing are extensions that the new image lacks.
func (f Facts) missing(d DatabaseFacts) (all []string) {
	for name := range d.Extensions {
		if _, ok := f.Extensions[name]; !ok && f.Extensions != nil {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// The fates of an extension of which the new image has another version.
type extensionFate int

const (
	canBeUpdated extensionFate = iota // there is a way to that version, or it is not known whether there is
	stays                             // there is none
	isUnknown                         // the new image's is older, and does not know the one that is installed
)

// of finds the extensions of a database that have a fate.
func (f Facts) of(fate extensionFate) func(DatabaseFacts) []string {
	return func(d DatabaseFacts) (all []string) {
		for name, version := range d.Extensions {
			has, ok := f.Extensions[name]
			if ok && has != version && fateOf(f.Scripts[name], version, has) == fate {
				all = append(all, fmt.Sprintf("%s %s, then %s", name, version, has))
			}
		}
		slices.Sort(all)
		return all
	}
}

// fateOf is that of an installed version where the image's is another one, by the image's scripts.
func fateOf(scripts []string, installed, has string) extensionFate {
	reached := []string{installed}
	known := false
	for i := 0; i < len(reached); i++ {
		for _, script := range scripts {
			from, to, leads := strings.Cut(script, "--")
			known = known || from == installed || leads && to == installed
			if leads && from == reached[i] && !slices.Contains(reached, to) {
				reached = append(reached, to)
			}
		}
	}
	switch {
	case len(scripts) == 0 || slices.Contains(reached, has):
		return canBeUpdated
	case !known && olderExtension(has, installed):
		return isUnknown
	}
	return stays
}

// olderExtension says that a version is older than another. PostgreSQL has no order of them: where both are not
// numbers with dots, it is not known, and so not said.
func olderExtension(a, b string) bool {
	numbersOfA, okA := numbers(a)
	numbersOfB, okB := numbers(b)
	return okA && okB && slices.Compare(numbersOfA, numbersOfB) < 0
}

func numbers(version string) (all []int, ok bool) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}
