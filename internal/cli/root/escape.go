package root

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Escaped is a writer for text that others have chosen, too: the names by which somebody has tried to log in, the
// messages of objects. What a terminal would obey, or would show in another order, is written as an escape, such as
// \u001b, which JSON has, too. What a line ends with and tabs stay.
func Escaped(to io.Writer) io.Writer { return &escaped{to: to} }

type escaped struct {
	to    io.Writer
	mutex sync.Mutex // verbs that do several things at once tell of them at once
	rest  []byte     // the beginning of a character whose end is to come
}

// Raw is the writer behind it, for what is not text.
func (e *escaped) Raw() io.Writer { return e.to }

// Write writes a text with its escapes. It says that all was written, or nothing.
func (e *escaped) Write(text []byte) (int, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	all := append(e.rest, text...)
	whole := len(all) - begun(all)
	e.rest = slices.Clone(all[whole:])
	if _, err := e.to.Write(EscapedText(all[:whole])); err != nil {
		return 0, err
	}
	return len(text), nil
}

// end writes what is left of a character whose end has not come.
func (e *escaped) end() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	_, _ = e.to.Write(EscapedText(e.rest)) // nobody is left to be told
	e.rest = nil
}

// begun is how many bytes at the end of a text are only the beginning of a character.
func begun(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// EscapedText is a text as Escaped writes it.
func EscapedText(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		char, size := utf8.DecodeRune(text)
		switch {
		case char == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case obeyed(char):
			out = fmt.Appendf(out, `\u%04x`, char)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}

// obeyed says that a terminal shows no character, but does something: control characters (C0, DEL and C1), and those
// that change the order in which others are shown (Unicode's bidirectional algorithm, UAX #9).
func obeyed(char rune) bool {
	switch {
	case char == '\n', char == '\t':
		return false
	case unicode.IsControl(char):
		return true
	}
	return char >= 0x202a && char <= 0x202e || char >= 0x2066 && char <= 0x2069
}
