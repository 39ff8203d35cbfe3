package main

import (
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	long := strings.Repeat("x", 110)
	tests := map[string]struct{ page, want string }{
		"what is short stays":          {"A sentence.\n\n- A rule.\n", "A sentence.\n\n- A rule.\n"},
		"120 columns are not too many": {long + " 345678901 2", long + " 345678901\n2"},
		"a paragraph is broken":        {long + " two words more", long + " two words\nmore"},
		"columns, not bytes":           {long + " ………………………", long + " ………………………"},
		"an item is indented":          {"- " + long + " two words", "- " + long + " two\n  words"},
		"an item is indented each time": {
			"- " + long + " two " + long + " 56789012", "- " + long + " two\n  " + long + "\n  56789012",
		},
		"a code span stays whole":       {long + " `a b c d e`.", long + "\n`a b c d e`."},
		"no line begins a list":         {long + " four five - six", long + " four\nfive - six"},
		"no line begins a numbered one": {long + " of it, 17. Then", long + " of\nit, 17. Then"},
		"no line begins a heading":      {long + " four five # six", long + " four\nfive # six"},
		"no line begins a quote":        {long + " four five > six", long + " four\nfive > six"},
		"a row of a table stays":        {"| " + long + " | two words |", "| " + long + " | two words |"},
		"a heading stays":               {"## " + long + " two words more", "## " + long + " two words more"},
		"a comment stays":               {"<!-- " + long + " two words -->", "<!-- " + long + " two words -->"},
		"what is fenced stays": {
			"```\n" + long + " two words more\n```\n" + long + " two words more",
			"```\n" + long + " two words more\n```\n" + long + " two words\nmore",
		},
		"a link longer than a line stays": {"[" + long + "](" + long + ").", "[" + long + "](" + long + ")."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fill(test.page); got != test.want {
				t.Errorf("filled:\n%s\nwanted:\n%s", got, test.want)
			}
		})
	}
}
