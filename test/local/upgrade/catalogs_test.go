package upgrade_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/test/releases"
)

// The list of docs/bluegreencatalog.md is complete: it has the catalogs that servers have, and no other. All versions
// from 16 to 19 have the same ones.
func TestEveryCatalogIsInTheList(t *testing.T) {
	majors := []int{17, 18}
	if major := releases.Wanted(); major > 0 && !slices.Contains(majors, major) {
		majors = append(majors, major)
	}
	var listed []string
	for _, c := range change.Catalogs {
		listed = append(listed, c.Name)
	}
	for _, major := range majors {
		t.Run(fmt.Sprintf("PostgreSQL %d", major), func(t *testing.T) {
			i := newInstance(t, major, "")
			i.start(i.Programs, i.Data.Path())
			conn, err := i.dial("postgres")
			must(t, err)
			defer conn.Close(t.Context())
			rows, err := conn.Query(t.Context(), `select relname::text from pg_class where relkind in ('r', 'p')
				and relnamespace = 'pg_catalog'::regnamespace and relpersistence <> 't' order by relname collate "C"`)
			must(t, err)
			there, err := pgx.CollectRows(rows, pgx.RowTo[string])
			must(t, err)
			for _, name := range there {
				if !slices.Contains(listed, name) {
					t.Errorf("internal/change/bluegreen/catalogs.go lacks %s: say what is done with it", name)
				}
			}
			for _, name := range listed {
				if !slices.Contains(there, name) {
					t.Errorf("the list has %s, and the server has not", name)
				}
			}
		})
	}
}
