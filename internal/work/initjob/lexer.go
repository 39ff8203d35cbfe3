package initjob

import (
	"strings"
	"unicode"
)

// maxWords is how many words of a statement are kept: enough for COPY with a
// long list of columns.
const maxWords = 200

// lexer finds where the statements of a text start, by PostgreSQL's rules for
// quotes, comments and function bodies (those of psql's scanner, psqlscan.l).
// PostgreSQL itself gets the text as a whole; what is found here serves only to
// refuse some statements early and to say the line of an error.
type lexer struct {
	text      string
	pos, line int
	// backslash is the line of the first backslash outside of quotes and comments.
	backslash int

	current *statement
	found   []statement
	parens  int
	// bodies counts BEGIN ATOMIC … END and the CASE … END in it, where semicolons
	// end no statement.
	bodies int
}

func (l *lexer) statements() []statement {
	for l.pos < len(l.text) {
		l.next()
	}
	l.finish()
	return l.found
}

// next passes one token.
func (l *lexer) next() {
	if l.between() {
		return
	}
	c := l.text[l.pos]
	if c == '\\' && l.backslash == 0 {
		l.backslash = l.line
	}
	l.start()
	switch tag := l.dollarTag(); {
	case c == '\'', c == '"':
		l.quoted(c, false)
	case tag != "":
		l.skip(len(tag))
		l.skipTo(tag, len(tag))
	case wordStart(c):
		l.word()
	case c >= '0' && c <= '9':
		// A number's letters ("1e5", "0x1f") are no words.
		l.skip(l.wordLength())
	default:
		l.paren(c)
		l.skip(1)
	}
}

// between passes what is part of no statement, or ends one, and says whether
// there was such a thing.
func (l *lexer) between() bool {
	rest := l.text[l.pos:]
	switch c := rest[0]; {
	case strings.IndexByte(" \t\r\n\f\v", c) >= 0:
		l.skip(1)
	case strings.HasPrefix(rest, "--"):
		l.skipTo("\n", 0)
	case strings.HasPrefix(rest, "/*"):
		l.comment()
	case c == ';' && l.parens == 0 && l.bodies == 0:
		l.skip(1)
		l.finish()
	default:
		return false
	}
	return true
}

func (l *lexer) start() {
	if l.current == nil {
		l.current = &statement{line: l.line}
	}
}

func (l *lexer) finish() {
	if l.current != nil {
		l.found = append(l.found, *l.current)
	}
	l.current, l.parens, l.bodies = nil, 0, 0
}

func (l *lexer) paren(c byte) {
	switch {
	case c == '(':
		l.parens++
	case c == ')' && l.parens > 0:
		l.parens--
	}
}

// skip goes on by n bytes and counts the lines.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.text[l.pos:l.pos+n], "\n")
	l.pos += n
}

// skipTo goes to the next mark and past n bytes of it, or to the end.
func (l *lexer) skipTo(mark string, n int) {
	if i := strings.Index(l.text[l.pos:], mark); i >= 0 {
		l.skip(i + n)
	} else {
		l.skip(len(l.text) - l.pos)
	}
}

// comment passes a comment, in which others may be nested.
func (l *lexer) comment() {
	for depth := 0; l.pos < len(l.text); {
		switch rest := l.text[l.pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.skip(2)
		case strings.HasPrefix(rest, "*/"):
			l.skip(2)
			if depth--; depth == 0 {
				return
			}
		default:
			l.skip(1)
		}
	}
}

// quoted passes a string or a quoted name. A doubled quote ends it and starts the
// next, which comes to the same.
func (l *lexer) quoted(quote byte, escapes bool) {
	l.skip(1)
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case c == '\\' && escapes && l.pos+1 < len(l.text):
			l.skip(2)
		case c == quote:
			l.skip(1)
			return
		default:
			l.skip(1)
		}
	}
}

// dollarTag is the $tag$ at the current place, or nothing.
func (l *lexer) dollarTag() string {
	if l.text[l.pos] != '$' {
		return ""
	}
	rest := l.text[l.pos+1:]
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == '$':
			return l.text[l.pos : l.pos+i+2]
		case wordStart(c), i > 0 && c >= '0' && c <= '9':
		default:
			return ""
		}
	}
	return ""
}

func (l *lexer) word() {
	n := l.wordLength()
	word := strings.ToUpper(l.text[l.pos : l.pos+n])
	l.skip(n)
	if word == "E" && l.pos < len(l.text) && l.text[l.pos] == '\'' {
		l.quoted('\'', true)
		return
	}
	l.body(word)
	if len(l.current.words) < maxWords {
		l.current.words = append(l.current.words, word)
	}
}

// body keeps count of the SQL bodies of functions: CREATE FUNCTION … BEGIN ATOMIC … END.
func (l *lexer) body(word string) {
	if l.parens > 0 || !l.current.createsRoutine() {
		return
	}
	switch {
	case word == "BEGIN", word == "CASE" && l.bodies > 0:
		l.bodies++
	case word == "END" && l.bodies > 0:
		l.bodies--
	}
}

// createsRoutine says whether it starts with CREATE [OR REPLACE] FUNCTION or PROCEDURE.
func (s statement) createsRoutine() bool {
	w := s.words
	if len(w) > 2 && w[1] == "OR" && w[2] == "REPLACE" {
		w = w[2:]
	}
	return len(s.words) > 1 && s.words[0] == "CREATE" && len(w) > 1 && (w[1] == "FUNCTION" || w[1] == "PROCEDURE")
}

func (l *lexer) wordLength() int {
	rest := l.text[l.pos:]
	for i := range len(rest) {
		if c := rest[i]; !wordStart(c) && (c < '0' || c > '9') && c != '$' {
			return max(i, 1)
		}
	}
	return len(rest)
}

// wordStart says whether a name may start with the byte; all of UTF-8 beyond ASCII may.
func wordStart(c byte) bool {
	return c == '_' || c >= 0x80 || unicode.IsLetter(rune(c))
}
