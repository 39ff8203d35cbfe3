package bring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/tablerestore"
	"toban.dev/test/local/single"
)

// seizing is what a restore runs as app before it runs anything as another owner. Its code gives the role of that
// session a password that app knows.
const seizing = `
	create function public.seize() returns int language plpgsql as $$ begin
		execute 'reset role';
		if current_user like 'toban%' then
			execute format('alter role %I password ''known''', current_user);
		end if;
		execute 'set role app'; -- what is loaded next is app's again
		return 1; end $$;
	create schema mixed; create table mixed.a (a int check (public.seize() = 1)); insert into mixed.a values (1);
	create table mixed.b (b int check (pg_sleep(1) is not null)); insert into mixed.b values (1) -- time to log in`

// A role can always change its own password. Whoever gets sessions of the role that has run his code gets the rights of
// no other owner, also not when the restore goes on as that one; and he does not keep it from going on.
func TestWhoSeizesTheRoleOfARestoreBecomesNoOtherOwner(t *testing.T) {
	each(t, map[string]func(*pair){"a schema": func(p *pair) {
		for _, s := range []*single.Server{p.former, p.primary} {
			p.asApp(s, seizing)
			s.Do(p.T, p.database, "create schema theirs authorization other; create table mixed.z (z int); "+
				"alter table mixed.z owner to other; grant usage on schema mixed to other; "+
				"insert into mixed.z select generate_series(1, 100000)")
		}
		ctx, cancel := context.WithCancel(p.Context())
		seized := make(chan int)
		go func() { seized <- p.seize(ctx) }()
		o := p.options()
		o.Schemas = []string{"mixed"}
		_, err := tablerestore.Run(p.Context(), o)
		cancel()
		if n := <-seized; n == 0 {
			p.Error("nobody got a session of the restore's role: the test tries nothing")
		}
		if err != nil {
			p.Errorf("the restore is kept from its work: %v", err)
		}
		p.want("0", "select count(*) from pg_class where relname = 'stolen'")
	}})
}

// seize logs in as each role of a restore that has the password, tries to become another owner for as long as that
// session lives, and returns how often it got one.
func (p *pair) seize(ctx context.Context) (n int) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for role := range strings.FieldsSeq(p.primary.Ask(p.T, p.database,
			"select coalesce(string_agg(rolname, ' '), '') from pg_roles where rolname ~ '^toban_load'")) {
			conn, err := p.primary.Dial(ctx, p.database, role, "known")
			if err != nil {
				continue
			}
			n++
			for ctx.Err() == nil && !conn.IsClosed() {
				_, _ = conn.Exec(ctx, "set role other; create table theirs.stolen ()", // refused, it is hoped
					pgx.QueryExecModeSimpleProtocol)
			}
			_ = conn.Close(context.Background())
		}
	}
	return n
}
