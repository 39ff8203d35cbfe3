package tablerestore

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// explain gives PostgreSQL's words about an error, without its detail, which has values of rows.
func explain(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err.Error()
	}
	return fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
}
