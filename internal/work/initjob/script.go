package initjob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// script is a source of SQL that has been read and looked through.
type script struct {
	name, text, digest string
	statements         []statement
	// secret says that no message and no log may quote it.
	secret bool
}

// statement is one of a script's statements, as far as an error message needs it.
type statement struct {
	line  int      // where it starts, from 1
	words []string // its first words, in upper case
}

// readScripts reads all sources before anything is changed, so that what is wrong
// with the last one is known before the first one has run.
func readScripts(sources []Source) ([]script, error) {
	scripts := make([]script, 0, len(sources))
	seen := map[string]int{}
	for _, s := range sources {
		text, err := os.ReadFile(s.Path)
		if err != nil {
			return nil, unreadable(s, err)
		}
		read, err := newScript(s.Name, string(text))
		if err != nil {
			return nil, err
		}
		read.secret = s.Secret
		// The same source twice is two steps.
		if seen[s.Name]++; seen[s.Name] > 1 {
			read.name = fmt.Sprintf("%s (%d)", s.Name, seen[s.Name])
		}
		scripts = append(scripts, read)
	}
	return scripts, nil
}

// unreadable is the failure of a source that can't be read. The volume of a Secret is optional, so that the Pod starts
// without it: then the file is missing.
func unreadable(s Source, err error) error {
	return &failure{
		step: s.Name, err: fmt.Errorf("read the SQL: %w", err),
		secretMissing: s.Secret && errors.Is(err, fs.ErrNotExist),
	}
}

// newScript finds the statements of a text and refuses those that can't be part
// of one transaction, or that are psql's and not PostgreSQL's.
func newScript(name, text string) (script, error) {
	sum := sha256.Sum256([]byte(text))
	s := script{name: name, digest: hex.EncodeToString(sum[:])}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return s, at(name, refuse("the SQL is not UTF-8 text"))
	}
	s.text = withoutGuards(strings.TrimPrefix(text, "\ufeff"))
	l := lexer{text: s.text, line: 1}
	s.statements = l.statements()
	if l.backslash > 0 {
		return s, at(line(name, l.backslash),
			refuse(`a backslash starts a command of psql, and psql does not run this: `+
				`write plain SQL (for a dump: pg_dump --inserts)`))
	}
	for _, st := range s.statements {
		if err := st.check(); err != nil {
			return s, at(line(name, st.line), err)
		}
	}
	return s, nil
}

func line(name string, number int) string { return fmt.Sprintf("%s, line %d", name, number) }

// check refuses what would end the script's own transaction, and what needs a
// client to send data.
func (s statement) check() error {
	word := func(i int) string {
		if i < len(s.words) {
			return s.words[i]
		}
		return ""
	}
	const whole = "each source runs as a whole in one transaction: leave %s out"
	switch first, second := word(0), word(1); {
	case first == "ROLLBACK" && (second == "TO" || word(2) == "TO"):
		return nil // to a savepoint of its own
	case first == "BEGIN", first == "COMMIT", first == "END", first == "ABORT", first == "ROLLBACK":
		return refuse(whole, first)
	case first == "START" && second == "TRANSACTION", first == "PREPARE" && second == "TRANSACTION":
		return refuse(whole, first+" "+second)
	case first == "COPY" && s.has("STDIN"), first == "COPY" && s.has("STDOUT"):
		return refuse("COPY from or to the client is not possible here: use INSERT (for a dump: pg_dump --inserts)")
	}
	return nil
}

func (s statement) has(word string) bool {
	for _, w := range s.words {
		if w == word {
			return true
		}
	}
	return false
}

// withoutGuards blanks the lines \restrict and \unrestrict, which pg_dump writes
// around every dump to keep psql from running commands that sneaked in. Here
// none can.
func withoutGuards(text string) string {
	if !strings.Contains(text, `restrict `) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, `\restrict `) || strings.HasPrefix(l, `\unrestrict `) {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// lineAt is the line of a position as PostgreSQL counts: characters, from 1.
func lineAt(text string, position int) int {
	number := 1
	for _, r := range text {
		if position--; position < 1 {
			break
		}
		if r == '\n' {
			number++
		}
	}
	return number
}
