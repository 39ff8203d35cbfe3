package bring_test

import (
	"strings"
	"testing"
)

// Rows that name large objects come back without these: it says so, and rows that would name nothing replace none.
func TestLargeObjectsAreNotLostInSilence(t *testing.T) {
	const made = `create domain photo as oid; create schema s;
		create table t (id int primary key, a oid, "b c" photo, n oid);
		create table s.u (a oid);
		insert into t values (1, lo_from_bytea(%1, 'one'), lo_from_bytea(%2, 'two'), 99), (2, %1, null, null);
		insert into s.u values (%2)`
	each(t, map[string]func(*pair){
		"one of them is gone": func(p *pair) {
			p.was(strings.NewReplacer("%1", "4711", "%2", "4712").Replace(made))
			p.then("select lo_unlink(4712); delete from t")
			got := p.one(p.options("t"))
			if !strings.Contains(got.Says, "name 2 large objects") ||
				!strings.Contains(got.Says, "1 of them are not there") {
				t.Errorf("of a table beside it says %q", got.Says)
			}
			o := p.options()
			o.Schemas = []string{"s"}
			if got := p.one(o); !strings.Contains(got.Says, "name 1 large objects") {
				t.Errorf("of a schema beside it says %q", got.Says)
			}
		},
		"in place": func(p *pair) {
			p.was(strings.NewReplacer("%1", "4713", "%2", "4714").Replace(made))
			p.then("select lo_unlink(4714); delete from t")
			p.refused(p.replace("t"), "name 2 large objects", "1 of them are not there")
			o := p.replace()
			o.Schemas = []string{"s"}
			p.refused(o, "schema s", "lo_from_bytea")
			p.want("0", "select count(*) from t")
			p.then("select lo_from_bytea(4714, 'two')")
			if got := p.one(p.replace("t")); !strings.Contains(got.Says, "are as they are now") {
				t.Errorf("it says %q", got.Says)
			}
			p.want("2", "select count(*) from t")
		},
	})
}
