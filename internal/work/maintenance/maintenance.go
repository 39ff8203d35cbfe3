// Package maintenance does what is left to do in a server's databases after its programs or its libraries have changed:
// it finds collations that sort in another order than before, and rebuilds the indexes that depend on them; it makes
// optimizer statistics that are missing, and updates extensions. It looks first and does only what is not done, so that
// it can end at any point and begin again. Its sessions must be a superuser's, with nothing but pg_catalog in
// search_path. It knows no Kubernetes and not who asks.
package maintenance

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Connect opens a superuser's session in a database of the server that takes writes.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

// Part is one of the things to do.
type Part string

// The parts, in the order in which they are done.
const (
	Statistics Part = "Statistics" // optimizer statistics that are missing
	Indexes    Part = "Indexes"    // those that another sort order leaves out of order
	Extensions Part = "Extensions" // those that are older than what the image has
)

// ParseParts reads parts with commas between them.
func ParseParts(text string) (parts []Part, err error) {
	for _, name := range strings.Split(text, ",") {
		switch part := Part(name); part {
		case Statistics, Indexes, Extensions:
			parts = append(parts, part)
		default:
			return nil, fmt.Errorf("%q is none of Statistics, Indexes and Extensions", name)
		}
	}
	return parts, nil
}

// maintenance is the database in which the work is noted: applications do not get in there.
const maintenance = "postgres"

// named is how many names of one sort a report or a result has at most.
const named = 5

// cut keeps the first names, and says how many more there are.
func cut(names []string) []string {
	if len(names) <= named {
		return names
	}
	return append(names[:named:named], fmt.Sprintf("and %d more", len(names)-named))
}

// databases are those that can be connected to. One whose removal was cut off has the connection limit -2.
func databases(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	return sql.Column[string](ctx, conn, "list the databases",
		"select datname::text from pg_database where datallowconn and datconnlimit <> -2 order by datname")
}
