//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Another library sorts texts in another order: it is found, and the Job rebuilds the index that is out of order. The
// library is played by a superuser, who gives the collation another locale and a former version. In make test,
// test/local/finish does that with a real server.
func TestLongSorting(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2, "backup: {none: true}"))
	s.ready("shop")
	s.sql("shop", "CREATE COLLATION counting (provider = icu, locale = 'en-u-kn')")
	s.sql("shop", "CREATE TABLE items (name text COLLATE counting PRIMARY KEY)")
	s.sql("shop", "INSERT INTO items SELECT 'x' || i FROM generate_series(1, 5000) i")
	s.sql("shop", "ANALYZE items")
	s.condition("shop", v1.ConditionCollationsCurrent, "True", v1.ReasonCollationsCurrent)
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err == nil && db.Status.SortedBy == "" {
			err = fmt.Errorf("the image is not noted: %+v", db.Status.Image)
		}
		return err
	})

	s.run("exec", "shop-0", "--", "psql", "-U", "postgres", "-XAtc", "UPDATE pg_collation SET colllocale = 'en', "+
		"collversion = 'former' WHERE collname = 'counting'", "app")
	s.toban("switchover", "shop") // a new primary looks
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if f := db.Status.Finish; err == nil && (f == nil || f.Step != v1.FinishDone) {
			err = fmt.Errorf("the status is %+v", f)
		}
		return err
	})
	db := s.ready("shop")
	if f := db.Status.Finish; f.Rebuilt != 1 || f.Checked != 1 || f.OutOfOrder != 1 || len(f.Duplicates) > 0 {
		t.Errorf("the status is %+v", f)
	}
	s.condition("shop", v1.ConditionCollationsCurrent, "True", v1.ReasonCollationsCurrent)
	if n := s.ask("shop", "SELECT count(*) FROM items WHERE name = 'x4711'"); n != "1" {
		t.Errorf("%s rows are found", n)
	}
	if told := s.toban("status", "shop"); !strings.Contains(told, "CollationsCurrent") ||
		!strings.Contains(told, "1 indexes are rebuilt") {
		t.Errorf("it tells %s", told)
	}
	s.until(func(ctx context.Context) error {
		left, err := s.Kubectl(ctx, "get", "jobs", "-o", "name", "-l", naming.LabelComponent+"="+naming.ComponentFinish)
		if err == nil && left != "" {
			err = fmt.Errorf("these are left: %s", left)
		}
		return err
	})
}
