package initjob

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStatementsAreFoundByTheirFirstLine(t *testing.T) {
	cases := map[string]struct {
		text string
		want []int
	}{
		"nothing":                           {"", nil},
		"comments only":                     {"-- a;\n/* b; /* c; */ d; */\n", nil},
		"two on one line":                   {"SELECT 1; SELECT 2", []int{1, 1}},
		"empty ones do not count":           {";;\n;SELECT 1;;", []int{2}},
		"a semicolon in a string":           {"SELECT 'a;\n''b;';\nSELECT 2;", []int{1, 3}},
		"a backslash in a plain string":     {"SELECT 'a\\';\nSELECT 2;", []int{1, 2}},
		"an escaped quote in an E-string":   {"SELECT E'a\\';\n';\nSELECT 2;", []int{1, 3}},
		"a semicolon in a quoted name":      {"SELECT 1 AS \"a;\nb\";\nSELECT 2;", []int{1, 3}},
		"a function's body in dollars":      {"DO $$ BEGIN\n NULL; END $$;\nSELECT 2;", []int{1, 3}},
		"dollars with a tag around others":  {"DO $a$ $$ ; $$\n; $a$;\nSELECT 2;", []int{1, 3}},
		"a parameter is no dollar quote":    {"SELECT $1;\nSELECT $2;", []int{1, 2}},
		"a dollar in a name quotes nothing": {"SELECT a$b$c;\nSELECT a$b$c;", []int{1, 2}},
		"a rule's actions in parentheses": {
			"CREATE RULE r AS ON INSERT TO t DO (\nSELECT 1; SELECT 2);\nSELECT 3;", []int{1, 3},
		},
		"a standard function body": {
			"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC\nSELECT CASE WHEN true THEN 1 " +
				"END;\nSELECT 2;\nEND;\nSELECT 3;",
			[]int{1, 5},
		},
		"a string that does not end": {"SELECT 1;\nSELECT 'a;\nb", []int{1, 2}},
		"other alphabets":            {"SELECT 'é;' AS 名前;\nSELECT 2;", []int{1, 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := newScript("x", c.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, st := range s.statements {
				got = append(got, st.line)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("statements start at lines %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatCannotBePartOfOneTransactionIsRefused(t *testing.T) {
	cases := map[string]struct{ text, step, words string }{
		"a command of psql":      {"SELECT 1;\n\\c other\n", "x, line 2", "psql"},
		"the end of COPY's data": {"SELECT 1\n\\.\n", "x, line 2", "psql"},
		"begin":                  {"-- dump\nBEGIN;\nSELECT 1;\nCOMMIT;", "x, line 2", "leave BEGIN out"},
		"start transaction":      {"start transaction;", "x, line 1", "leave START TRANSACTION out"},
		"commit in the middle":   {"SELECT 1;\nSELECT 2; commit;\nSELECT 3;", "x, line 2", "leave COMMIT out"},
		"end":                    {"SELECT 1;\nEND", "x, line 2", "leave END out"},
		"rollback":               {"SELECT 1;\nROLLBACK", "x, line 2", "leave ROLLBACK out"},
		"two-phase commit":       {"SELECT 1;\nPREPARE TRANSACTION 'x'", "x, line 2", "leave PREPARE TRANSACTION out"},
		"copy from the client":   {"COPY t (a, b)\nFROM stdin;", "x, line 1", "use INSERT"},
		"a NUL byte":             {"SELECT 1;\x00", "x", "not UTF-8"},
		"UTF-16":                 {"\xff\xfeS\x00E\x00", "x", "not UTF-8"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newScript("x", c.text)
			got := Report(err)
			if got.Done || got.Step != c.step || !strings.Contains(got.Message, c.words) {
				t.Errorf("got %+v, want step %q and a message with %q", got, c.step, c.words)
			}
			if transient(err) {
				t.Error("it would be tried again, and fail again")
			}
		})
	}
}

func TestWhatOnlyLooksLikeATransactionIsTaken(t *testing.T) {
	cases := map[string]string{
		"rollback to a savepoint":      "SAVEPOINT a; ROLLBACK TO a; ROLLBACK WORK TO SAVEPOINT a; RELEASE a;",
		"a prepared statement":         "PREPARE p AS SELECT 1;",
		"a word in a string":           "SELECT 'x; COMMIT; y';",
		"a block of plpgsql":           "DO $$ BEGIN COMMIT; END $$;",
		"copy from a file":             "COPY t FROM '/tmp/x';",
		"a backslash in a string":      `SELECT '\c', "\d", $$\q$$; -- \x`,
		"the guards of pg_dump":        "\\restrict abc\nSELECT 1;\n\\unrestrict abc\n",
		"a byte order mark":            "\ufeffSELECT 1;",
		"names that begin the same":    "beginning; endless; committed;",
		"a function with an SQL body":  "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END;",
		"a procedure with an SQL body": "CREATE PROCEDURE f() BEGIN ATOMIC SELECT 1; END;",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := newScript("x", text); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGuardsOfADumpKeepTheLines(t *testing.T) {
	s, err := newScript("x", "\\restrict abc\nSELECT 1;\n\\unrestrict abc\nSELECT 2;")
	if err != nil {
		t.Fatal(err)
	}
	if s.statements[0].line != 2 || s.statements[1].line != 4 {
		t.Errorf("lines are %v, want 2 and 4", s.statements)
	}
}

func TestLineAt(t *testing.T) {
	cases := map[string]struct {
		text     string
		position int
		want     int
	}{
		"first character":          {"a\nb", 1, 1},
		"the line's end":           {"a\nb", 2, 1},
		"second line":              {"a\nb", 3, 2},
		"counted in characters":    {"ééé\nb", 5, 2},
		"after the end of it all":  {"a\nb\n", 99, 3},
		"a position that is not 1": {"", 1, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lineAt(c.text, c.position); got != c.want {
				t.Errorf("lineAt(%q, %d) = %d, want %d", c.text, c.position, got, c.want)
			}
		})
	}
}

func TestReadScripts(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.sql")
	if err := os.WriteFile(path, []byte("SELECT 1;"), 0o600); err != nil {
		t.Fatal(err)
	}
	twice, err := readScripts([]Source{{Name: "a", Path: path}, {Name: "a", Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	if twice[0].name == twice[1].name {
		t.Errorf("the same source twice has one name, %q: the second would never run", twice[0].name)
	}
	_, err = readScripts([]Source{{Name: "b", Path: filepath.Join(folder, "missing")}})
	if got := Report(err); got.Step != "b" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %+v", got)
	}
}

// Only the Job can see that a Secret is missing, and it says so by itself: nobody has to find it in the message.
func TestAMissingSecret(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct {
		source Source
		want   bool
	}{
		"the Secret is not there":             {Source{Path: filepath.Join(folder, "a"), Secret: true}, true},
		"the ConfigMap is not there":          {Source{Path: filepath.Join(folder, "a")}, false},
		"what is there is no file to be read": {Source{Path: folder, Secret: true}, false},
	} {
		_, err := readScripts([]Source{c.source})
		if got := Report(err); got.SecretMissing != c.want || got.Message == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
