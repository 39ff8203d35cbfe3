// Package anchor has the names by which GitHub links to the headings of a page.
package anchor

import (
	"fmt"
	"strings"
	"unicode"
)

// Names are those of one page. The zero value has none yet.
type Names struct{ taken map[string]bool }

// Next is the name of the next heading: with a number where another heading of the page has it already.
func (n *Names) Next(title string) string {
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	base := of(title)
	name := base
	for i := 1; n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	n.taken[name] = true
	return name
}

func of(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
