package sql

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Asked is who can be asked: a connection, or a transaction.
type Asked interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// Ask are the rows of a query. Where it can't be asked they have the error, so that it is told once: to who reads them
// to their end, with pgx.CollectRows or pgx.ForEachRow.
func Ask(ctx context.Context, of Asked, query string, args ...any) pgx.Rows {
	rows, _ := of.Query(ctx, query, args...) // the error is that of the rows, too
	return rows
}

// Column are the values that a query of one column finds. what says in an error what was being done.
func Column[T any](ctx context.Context, of Asked, what, query string, args ...any) ([]T, error) {
	all, err := pgx.CollectRows(Ask(ctx, of, query, args...), pgx.RowTo[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// Value is the one value that a query finds. what says in an error what was being done.
func Value[T any](ctx context.Context, of interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}, what, query string, args ...any) (value T, err error) {
	if err := of.QueryRow(ctx, query, args...).Scan(&value); err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// Do runs a statement whose answer nobody needs. what says in an error what was being done.
func Do(ctx context.Context, in interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}, what, statement string, args ...any) error {
	if _, err := in.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Quote is an identifier as a statement has it: a name, or several with dots between them.
func Quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Literal is a text as a constant of a statement. standard_conforming_strings is on in all sessions of ours.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
