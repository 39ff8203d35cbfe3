package bring_test

import (
	"fmt"
	"hash/fnv"
	"testing"
)

// forged is a comment as a restore writes one on what it has brought over.
func forged(state string) string {
	return fmt.Sprintf(`'toban %s: {"state":%q,"object":{"name":"x","as":"x","rows":7}}'`, suffix, state)
}

// asOther runs statements on the primary as another role than the owner, which may create in the database.
func (p *pair) asOther(statements string) {
	p.Helper()
	p.primary.Do(p.T, p.database, "grant create on database "+p.database+" to other; "+
		"grant create on schema public to other; set role other; "+statements)
}

// Who learns of a restore can make what it would make, with its comments: none of that is taken for the restore's own.
func TestAForgedMarkCountsForNothing(t *testing.T) {
	const notOurs = "was not made by this restore"
	each(t, map[string]func(*pair){
		"on a table beside": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			p.asOther("create table t_" + suffix + " (a int); insert into t_" + suffix + " values (666); " +
				"grant select on t_" + suffix + " to app; comment on table t_" + suffix + " is " + forged("restored"))
			p.refused(p.options("t"), notOurs)
			p.refused(p.replace("t"), notOurs)
			p.want("1", "select sum(a) from t")
		},
		"on the rows that a restore would keep": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			p.then("delete from t")
			p.asOther("create table t_before_20261123_1200 (); comment on table t_before_20261123_1200 is " +
				forged("replaced"))
			p.refused(p.replace("t"), notOurs)
			p.want("0", "select count(*) from t")
		},
		"on a schema beside": func(p *pair) {
			p.was("create schema sales; create table sales.t (a int); insert into sales.t values (1)")
			p.asOther("create schema sales_" + suffix + "; create table sales_" + suffix + ".t (a int); " +
				"comment on schema sales_" + suffix + " is " + forged("restored"))
			o := p.replace()
			o.Schemas = []string{"sales"}
			p.refused(o, notOurs)
			p.want("1", "select sum(a) from sales.t")
		},
		"on a schema that it would drop": func(p *pair) {
			p.was("create schema sales; create table sales.t (a int)")
			p.asOther("create schema sales_" + suffix + "; comment on schema sales_" + suffix + " is " +
				forged("being restored"))
			o := p.options()
			o.Schemas = []string{"sales"}
			p.refused(o, notOurs)
		},
		"on the schema that is replaced": func(p *pair) {
			p.was("create schema sales; create table sales.t (a int); insert into sales.t values (1)")
			p.asOther("create schema sales_before_20261123_1200; comment on schema sales_before_20261123_1200 is " +
				forged("replaced"))
			o := p.replace()
			o.Schemas = []string{"sales"}
			p.refused(o, notOurs)
		},
		"on a schema of the tables under way": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			h := fnv.New32a()
			_, _ = h.Write([]byte("public"))
			stage := fmt.Sprintf("toban_%s_%08x", suffix, h.Sum32())
			p.asOther("create schema " + stage + "; create table " + stage + ".mine (a int); " +
				"comment on schema " + stage + " is " + forged("being restored"))
			p.refused(p.options("t"), notOurs)
			p.want("0", "select count(*) from "+stage+".mine")
			p.asOther("drop schema " + stage + " cascade")
		},
		"on the database": func(p *pair) {
			p.was("create table t (a int); insert into t values (1)")
			p.asApp(p.primary, "comment on database "+p.database+" is "+forged("restored"))
			if got := p.one(p.options()); got.Rows != 1 {
				p.Errorf("it is %+v", got)
			}
		},
		"on a database beside": func(p *pair) {
			p.was("create table t (a int); insert into t values (1)")
			beside := p.database + "_" + suffix
			p.primary.Do(p.T, "postgres", "create database "+beside+" owner other")
			p.primary.Do(p.T, "postgres", "comment on database "+beside+" is "+forged("restored"))
			p.refused(p.options(), notOurs)
		},
	})
}

// While a superuser makes what is in a database, nobody else can be in it: also not who is to own it.
func TestADatabaseIsNobodysBeforeItsExtensionsAreThere(t *testing.T) {
	each(t, map[string]func(*pair){"": func(p *pair) {
		p.was("create table t (a int); insert into t values (1)")
		o, staged := p.options(), false
		o.At = func(point string) {
			if point != "staged" {
				return
			}
			staged = true
			if conn, err := p.primary.Dial(p.Context(), p.database+"_"+suffix, "app", ""); err == nil {
				_ = conn.Close(p.Context())
				p.Error("its owner gets into the database before its extensions are made")
			}
		}
		if got := p.one(o); got.Rows != 1 || !staged {
			p.Errorf("it is %+v", got)
		}
		if got := p.primary.Ask(p.T, "postgres", "select pg_get_userbyid(datdba) from pg_database where datname = '"+
			p.database+"_"+suffix+"'"); got != "app" {
			p.Errorf("it belongs to %s", got)
		}
	}})
}
