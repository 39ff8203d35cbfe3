package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// What needs a database is tested with a real one: test/local/guestbook.

//go:embed migrations page.html
var others embed.FS

func TestMigrationsAreInTheirOrder(t *testing.T) {
	all, err := load(others)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, m := range all {
		if m.number != i+1 || strings.TrimSpace(m.sql) == "" {
			t.Errorf("migration %d is %+v", i+1, m)
		}
		names = append(names, m.name)
	}
	if got := strings.Join(names, ", "); got != "entry, place, one entry each" {
		t.Errorf("the migrations are %s", got)
	}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	postgres := func(code string) error { return fmt.Errorf("write: %w", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the connection broke":                {errors.New("unexpected EOF"), true},
		"the server did not answer":           {context.DeadlineExceeded, true},
		"the server stops":                    {postgres("57P01"), true},
		"the server starts":                   {postgres("57P03"), true},
		"the server is a standby now":         {postgres(readOnly), true},
		"too many connections":                {postgres("53300"), true},
		"a deadlock":                          {postgres("40P01"), true},
		"somebody's long transaction":         {postgres(lockNotAvailable), true},
		"a statement that was cancelled":      {postgres("57014"), false},
		"a table that is not there":           {postgres(undefinedTable), false},
		"a name that is there already":        {postgres(uniqueViolation), false},
		"a password that is not right":        {postgres("28P01"), false},
		"a mistake in the SQL of a migration": {postgres("42601"), false},
	} {
		if got := passes(c.err); got != c.want {
			t.Errorf("%s: passes is %v", name, got)
		}
	}
}

func TestEntriesThatCannotBe(t *testing.T) {
	good := entry{ID: "1", Name: "秋", Message: "こんにちは", Place: "東京"}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(*entry)
		word string
	}{
		"no name":    {func(e *entry) { e.Name = " " }, "needs a name"},
		"no message": {func(e *entry) { e.Message = "\n" }, "needs a name and a message"},
		"a long name": {
			func(e *entry) { e.Name = strings.Repeat("秋", longestName+1) }, "more than 80 characters",
		},
		"a long message":    {func(e *entry) { e.Message = strings.Repeat("x", longestMessage+1) }, "more than 1000"},
		"a long id":         {func(e *entry) { e.ID = strings.Repeat("x", longestName+1) }, "the id has"},
		"bytes, not text":   {func(e *entry) { e.Message = "\xff" }, "the message is no text"},
		"a zero in a place": {func(e *entry) { e.Place = "a\x00b" }, "the place is no text"},
	} {
		e := good
		c.edit(&e)
		if err := e.check(); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s gives %v, want a sentence with %q", name, err, c.word)
		}
	}
}

func TestCommandsThatAreNone(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, args := range [][]string{nil, {"help"}, {"serv"}} {
		if err := run(t.Context(), log, args); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%q gives %v", args, err)
		}
	}
}

// A mistake in the build is told by the program itself.
func TestAVersionThatIsNone(t *testing.T) {
	defer func(before string) { version = before }(version)
	for _, wrong := range []string{"", "0", "99", "v2"} {
		version = wrong
		if err := run(t.Context(), slog.New(slog.DiscardHandler), []string{"version"}); err == nil {
			t.Errorf("version %q is taken", wrong)
		}
	}
}
