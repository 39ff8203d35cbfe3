package sql

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Ask are the rows of a query. Where it can't be asked they have the error, so that it is told once: to who reads them
// to their end, with pgx.CollectRows or pgx.ForEachRow.
func Ask(ctx context.Context, on interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}, query string, args ...any) pgx.Rows {
	rows, _ := on.Query(ctx, query, args...) // the error is that of the rows, too
	return rows
}
