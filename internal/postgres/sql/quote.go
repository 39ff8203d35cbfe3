package sql

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Quote is an identifier as a statement has it: a name, or several with dots between them.
func Quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Literal is a text as a constant of a statement. standard_conforming_strings is on in all sessions of ours.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
