package upgrade_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/work/bluegreen"
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

// notRead are the columns of catalogs that are compared which no query names, by the reason.
var notRead = map[string]string{
	"what PostgreSQL writes for the object has it, where both sides are of one version": `pg_constraint.conbin
		pg_constraint.conexclop pg_constraint.conffeqop pg_constraint.conpfeqop pg_constraint.conppeqop
		pg_constraint.conperiod pg_index.indexprs pg_index.indpred pg_partitioned_table.partattrs
		pg_partitioned_table.partclass pg_partitioned_table.partcollation pg_partitioned_table.partexprs
		pg_partitioned_table.partnatts pg_partitioned_table.partrelid pg_partitioned_table.partstrat
		pg_proc.proargdefaults pg_proc.prosqlbody pg_rewrite.ev_action pg_rewrite.ev_qual pg_statistic_ext.stxexprs
		pg_trigger.tgqual`,
	"the name of the object has it": `pg_amop.amoplefttype pg_amop.amoprighttype pg_operator.oprkind
		pg_operator.oprleft pg_operator.oprname pg_operator.oprright pg_proc.proargtypes pg_proc.pronargs
		pg_type.typname`,
	"it follows from another column, or from another object that is looked at": `pg_attribute.attalign
		pg_attribute.attbyval pg_attribute.attlen pg_class.relchecks pg_class.relhasindex pg_class.relhasrules
		pg_class.relhassubclass pg_class.relhastriggers pg_class.relisshared pg_class.relnatts pg_class.reltype
		pg_constraint.conindid pg_constraint.coninhcount pg_constraint.conislocal pg_database.dathasloginevt
		pg_index.indnatts pg_partitioned_table.partdefid pg_trigger.tgconstraint pg_trigger.tgconstrindid
		pg_trigger.tgnargs pg_trigger.tgparentid pg_type.typdefaultbin pg_language.lanispl`,
	"it is about where and how the data is kept": `pg_attribute.attcacheoff pg_attribute.atthasmissing
		pg_attribute.attmissingval pg_class.relallfrozen pg_class.relallvisible pg_class.relfilenode
		pg_class.relfrozenxid pg_class.relminmxid pg_class.relpages pg_class.relrewrite pg_class.reltuples
		pg_collation.collversion pg_database.datcollversion pg_database.datfrozenxid pg_database.datminmxid
		pg_index.indcheckxmin pg_index.indislive pg_index.indisready pg_type.typisdefined`,
	"PostgreSQL does not go by it, and an upgrade need not keep it": `pg_attribute.attndims pg_type.typndims
		pg_collation.collencoding`,
	"what belongs to an extension may be newer on the other side": `pg_extension.extcondition
		pg_extension.extconfig pg_extension.extrelocatable pg_extension.extversion`,
	"the page says that it is not compared":   `pg_index.indisclustered`,
	"a partition that is detached is refused": `pg_inherits.inhdetachpending`,
	"a refresh is noted and carried":          `pg_class.relispopulated`,
}

// What the list says to be compared is read: each column of such a catalog is in a query, or it is said why not.
func TestEveryColumnThatIsComparedIsRead(t *testing.T) {
	for _, major := range []int{17, 18} {
		t.Run(fmt.Sprintf("PostgreSQL %d", major), func(t *testing.T) {
			i := newInstance(t, major, "")
			i.start(i.Programs, i.Data.Path())
			queries := bluegreen.Queries(major, major)
			why := map[string]string{}
			for reason, columns := range notRead {
				for _, column := range strings.Fields(columns) {
					why[column] = reason
				}
			}
			for _, c := range change.Catalogs {
				if c.Treatment != change.Compared && c.Treatment != change.ComparedInPause {
					continue
				}
				columns := i.ask("postgres", "select string_agg(attname, ' ' order by attnum) from pg_attribute "+
					"where attrelid = '"+c.Name+"'::regclass and attnum > 0 and attname <> 'oid'")
				for _, column := range strings.Fields(columns) {
					read := regexp.MustCompile(`\b` + column + `\b`).MatchString(queries)
					reason := why[c.Name+"."+column]
					if read == (reason != "") {
						t.Errorf("%s.%s: that it is read is %t, and why it is not is %q", c.Name, column, read, reason)
					}
				}
			}
		})
	}
}
