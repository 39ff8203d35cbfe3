package maintenance

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// older are the extensions of a database that have another version than the image would give them, and a way there.
const older = `select e.extname::text, e.extversion, a.default_version
	from pg_extension e join pg_available_extensions a on a.name = e.extname
	where e.extversion <> a.default_version and exists (select from pg_extension_update_paths(e.extname) p
		where p.source = e.extversion and p.target = a.default_version and p.path is not null)
	order by e.extname`

// updateExtensions updates them where that is wanted, and names them else.
func (w *work) updateExtensions(ctx context.Context) error {
	for n, database := range w.databases {
		if err := w.tell(ctx, Progress{n, len(w.databases), "extensions of " + database}); err != nil {
			return err
		}
		conn, err := w.in(ctx, database)
		if err != nil {
			return err
		}
		type extension struct{ Name, Installed, Default string }
		found, err := pgx.CollectRows(sql.Ask(ctx, conn, older), pgx.RowToStructByPos[extension])
		if err != nil {
			return fmt.Errorf("look for extensions in database %s: %w", database, err)
		}
		for _, e := range found {
			words := fmt.Sprintf("%s in database %s (%s, the image has %s)", e.Name, database, e.Installed, e.Default)
			if !w.UpdateExtensions {
				w.result.Older = append(w.result.Older, words)
				continue
			}
			_, err := conn.Exec(ctx, "alter extension "+sql.Quote(e.Name)+" update", pgx.QueryExecModeSimpleProtocol)
			switch code := sql.Code(err); {
			case err == nil:
				w.result.Updated = append(w.result.Updated, words)
			case code == "" || transient(code):
				return fmt.Errorf("update extension %s: %w", e.Name, err)
			default:
				w.result.Older = append(w.result.Older, words)
				w.result.Failures = append(w.result.Failures,
					fmt.Sprintf("extension %s in database %s: %s", e.Name, database, sql.Explain(err, sql.ShownCode)))
			}
		}
	}
	return nil
}
