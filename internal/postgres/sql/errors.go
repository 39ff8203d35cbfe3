package sql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error is PostgreSQL's own error in a chain, nil where there is none.
func Error(err error) *pgconn.PgError {
	var own *pgconn.PgError
	if errors.As(err, &own) {
		return own
	}
	return nil
}

// Code is the SQLSTATE of PostgreSQL's error (PostgreSQL 17 documentation, appendix A), "" where it is none.
func Code(err error) string {
	if own := Error(err); own != nil {
		return own.Code
	}
	return ""
}

// InClass says that a SQLSTATE is of one of these classes, its first two characters.
func InClass(code string, classes ...string) bool {
	return len(code) == 5 && slices.Contains(classes, code[:2])
}

// Shown is how much of an error may be shown to who can't read the data.
type Shown int

const (
	// ShownCode is its code, and its message too where that can't have a user's data in it, by its class.
	ShownCode Shown = iota
	// ShownMessage is its message, without its detail, which has values of rows.
	ShownMessage
	// ShownAll is also its severity, detail and hint.
	ShownAll
)

// Explain gives PostgreSQL's words about an error, as far as they may be shown; other errors speak for themselves.
func Explain(err error, shown Shown) string {
	own := Error(err)
	switch {
	case own == nil:
		return err.Error()
	case shown == ShownCode && !InClass(own.Code, "53", "55", "57", "58", "42", "0A"):
		return "SQLSTATE " + own.Code
	case shown < ShownAll:
		return fmt.Sprintf("%s (SQLSTATE %s)", own.Message, own.Code)
	}
	words := []string{fmt.Sprintf("%s: %s (SQLSTATE %s)", own.Severity, own.Message, own.Code)}
	for _, part := range []struct{ name, text string }{{"DETAIL", own.Detail}, {"HINT", own.Hint}} {
		if part.text != "" {
			words = append(words, part.name+": "+part.text)
		}
	}
	return strings.Join(words, " ")
}
