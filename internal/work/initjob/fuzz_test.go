package initjob

import (
	"strings"
	"testing"
)

// Users' SQL, whatever it is: it is gone through once, its statements begin on lines that there are, in order, and what
// is quoted or in a comment has no statements. What the lexer passes over wrongly could end the init Job's transaction.
func FuzzScript(f *testing.F) {
	for _, text := range []string{"SELECT 1; SELECT 'a;\n''b;';\nCOMMIT", "/* a /* ; */ */ -- x\nBEGIN",
		"$a$ ; $$\n; $a$;x",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; SELECT 3", `E'\';' ; "`,
		"COPY t (a) FROM stdin;", "\\restrict a\nSELECT 1;\n\\unrestrict a", "(((;", "é名前$1", "1e5x'", "\ufeff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := lexer{text: text, line: 1}
		last := 1
		for _, s := range l.statements() {
			if s.line < last || s.line > 1+strings.Count(text, "\n") || len(s.words) > maxWords {
				t.Errorf("a statement with %d words begins on line %d, after one on %d", len(s.words), s.line, last)
			}
			last = s.line
		}
		if _, err := newScript("x", text); err != nil && transient(err) {
			t.Errorf("%v is tried again", err)
		}
		for _, quoted := range quotings(text) {
			l := lexer{text: quoted, line: 1}
			if found := l.statements(); len(found) != 2 || found[1].words[0] != "COMMIT" || l.backslash != 0 {
				t.Errorf("%q has the statements %+v, and a backslash on line %d", quoted, found, l.backslash)
			}
		}
	})
}

// quotings are SQL of two statements, where the text is quoted in the first, in each way that can quote it.
func quotings(text string) []string {
	all := []string{
		"SELECT '" + strings.ReplaceAll(text, "'", "''") + "'; COMMIT",
		`SELECT "` + strings.ReplaceAll(text, `"`, `""`) + `"; COMMIT`,
		"SELECT E'" + strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(text) + "'; COMMIT",
		"SELECT --" + strings.ReplaceAll(text, "\n", " ") + "\n1; COMMIT",
	}
	if !strings.Contains(text+"$", "$fuzz$") {
		all = append(all, "SELECT $fuzz$"+text+"$fuzz$; COMMIT")
	}
	if !strings.Contains(text+"*", "*/") && !strings.Contains("*"+text, "/*") && !strings.Contains(text+"*", "/*") {
		all = append(all, "SELECT /*"+text+"*/ 1; COMMIT")
	}
	return all
}
