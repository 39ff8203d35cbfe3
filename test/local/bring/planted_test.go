package bring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// plants makes what is to be called in place of PostgreSQL's own, as who has something in a schema, too.
const plants = `create function SCHEMA.upper(varchar) returns text language sql as 'select current_user';
	create table SCHEMA.planted (a int); create domain SCHEMA.rounded as int; create sequence SCHEMA.next;
	create view SCHEMA.seen as select 1; create type SCHEMA.span as range (subtype = int);
	create table SCHEMA.numbered (id int generated always as identity, s serial); create type SCHEMA.pair as (a int);
	create operator SCHEMA.=== (function = SCHEMA.upper, rightarg = varchar)`

// While a schema is loaded, all who have something in it may make more there. What they make then does not stay: who
// uses the schema would call it. That goes also for what they commit later.
func TestWhatSomebodyMakesInASchemaThatIsLoadedDoesNotStay(t *testing.T) {
	stories := map[string]func(*pair){}
	for name, late := range map[string]bool{
		"at once": false, "committed late": true, "committed late, and not tracked": true,
	} {
		stories[name] = func(p *pair) {
			p.was(sales)
			p.primary.Do(p.T, "postgres", "alter role other login")
			if strings.Contains(name, "not tracked") {
				p.primary.Do(p.T, "postgres", "alter role other set track_activities = off")
			}
			o, committed := p.schema(false), (chan struct{})(nil)
			o.At = func(point string) {
				if point == "staged" {
					committed = p.plant(late)
				}
			}
			got := p.one(o)
			<-committed
			if !strings.Contains(got.Says, "sales_"+suffix+".planted") {
				p.Errorf("it says %q", got.Says)
			}
			p.want("0", "select count(*) from pg_proc where pronamespace = 'sales_"+suffix+"'::regnamespace "+
				"and proname = 'upper'")
			p.want("0", "select count(*) from pg_class where relnamespace = 'sales_"+suffix+"'::regnamespace "+
				"and relname in ('planted', 'next', 'seen', 'numbered', 'pair')")
			p.want("0", "select count(*) from pg_type where typname in ('rounded', 'span')")
			p.want("4", "select count(*) from pg_class where relnamespace = 'sales_"+suffix+"'::regnamespace "+
				"and relkind in ('r', 'S')")
		}
	}
	each(t, stories)
}

// plant makes it, and says when that is committed.
func (p *pair) plant(late bool) chan struct{} {
	p.Helper()
	committed := make(chan struct{})
	conn, err := p.primary.Dial(p.Context(), p.database, "other", "")
	if err != nil {
		p.Fatal(err)
	}
	statements := "begin;" + strings.ReplaceAll(plants, "SCHEMA", "sales_"+suffix)
	if _, err := conn.Exec(p.Context(), statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.Error(err)
	}
	commit := func() {
		defer close(committed)
		_, _ = conn.Exec(context.Background(), "commit")
		_ = conn.Close(context.Background())
	}
	if !late {
		commit()
	} else {
		time.AfterFunc(3*time.Second, commit)
	}
	return committed
}
