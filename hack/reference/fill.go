package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// columns is how long a line of prose may be.
const columns = 120

// fill breaks the lines of prose of a page that are too long. Up to here a paragraph, or an item of a
// list, is one line. What Markdown wants on one line stays on it: headings, the rows of tables, comments;
// and so does what is fenced.
func fill(page string) string {
	lines := strings.Split(page, "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && !oneLined.MatchString(line) {
			lines[i] = fillLine(line)
		}
	}
	return strings.Join(lines, "\n")
}

var oneLined = regexp.MustCompile("^(#|\\||<!--|```)")

// fillLine breaks a paragraph, or an item of a list, whose later lines are indented.
func fillLine(line string) string {
	indent := ""
	if strings.HasPrefix(line, "- ") {
		indent = "  "
	}
	var out strings.Builder
	at := 0
	for i, word := range words(line) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+length > columns:
			out.WriteString("\n" + indent)
			at = len(indent)
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += length
	}
	return out.String()
}

// words are the parts between which a line can be broken. A code span is one, and so is a word with the next that would
// begin a list, a heading, a quote or a table at the start of a line.
func words(line string) []string {
	var all []string
	for _, word := range strings.Fields(line) {
		last := len(all) - 1
		if last >= 0 && (strings.Count(all[last], "`")%2 == 1 || beginsBlock.MatchString(word)) {
			all[last] += " " + word
			continue
		}
		all = append(all, word)
	}
	return all
}

var beginsBlock = regexp.MustCompile(`^([-+*=]+|[0-9]+[.)]|#+|[>|].*)$`)
