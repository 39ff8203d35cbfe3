package bring_test

import (
	"context"
	"errors"
	"testing"

	"toban.dev/internal/work/tablerestore"
)

var errKilled = errors.New("killed")

// killedAt ends a restore at one of the points that it passes, with all its sessions, as when its process is killed. It
// says where, "" if the restore has come to its end before.
func (p *pair) killedAt(o tablerestore.Options, stop int) (at string) {
	p.Helper()
	ctx, kill := context.WithCancelCause(p.Context())
	defer kill(nil)
	n := 0
	o.At = func(point string) {
		if n++; n != stop {
			return
		}
		at = point
		p.on("postgres", `select pg_terminate_backend(pid, 10000) from pg_stat_activity
			where pid <> pg_backend_pid() and backend_type = 'client backend'`)
		kill(errKilled)
	}
	_, err := tablerestore.Run(ctx, o)
	if errors.Is(err, tablerestore.ErrRefused) || at == "" && err != nil {
		p.Fatalf("after %q: %v", at, err)
	}
	return at
}

// through kills a restore at each point in turn, each time in what the one before has left.
func (p *pair) through(o tablerestore.Options) tablerestore.Object {
	p.Helper()
	var points []string
	for stop := 1; ; stop++ {
		at := p.killedAt(o, stop)
		if at == "" {
			break
		}
		points = append(points, at)
	}
	p.Logf("killed at %q", points)
	if len(points) < 4 {
		p.Errorf("it was killed at %q only", points)
	}
	return p.one(o)
}

func TestKilledAnywhereAndRunAgain(t *testing.T) {
	each(t, map[string]func(*pair){
		"beside": func(p *pair) {
			p.was(orders)
			p.then("delete from orders where id > 700")
			if o := p.through(p.options("orders")); o.Rows != 1000 || o.OnlyRestored != 300 || !o.Compared {
				p.Errorf("it is %+v", o)
			}
			p.want("1000", "select count(*) from "+beside)
			p.want("2", "select count(*) from pg_class where relname like '%restored%' and relkind = 'r' "+
				"or relname = 'orders'")
		},
		"in place": func(p *pair) {
			p.was(orders)
			p.then("delete from orders where id > 700")
			p.one(p.options("orders"))
			if o := p.through(p.replace("orders")); o.Kept == "" || o.OnlyRestored != 300 {
				p.Errorf("it is %+v", o)
			}
			p.want("1000", "select count(*) from orders")
			p.want("700", "select count(*) from orders_before_20261123_1200")
			p.want("0", "select count(*) from pg_class where relname like '%restored%'")
		},
		"in the place of one that is gone": func(p *pair) {
			p.was(orders)
			p.then("drop table orders")
			if o := p.through(p.replace("orders")); o.As != "public.orders" || o.Rows != 1000 {
				p.Errorf("it is %+v", o)
			}
			p.want("1000", "select count(*) from orders")
		},
		"a schema": func(p *pair) {
			p.was(sales)
			p.then("delete from sales.items")
			if o := p.through(p.schema(true)); o.As != "sales" || o.Kept != "sales_before_20261123_1200" {
				p.Errorf("it is %+v", o)
			}
			p.want("3", "select count(*) from sales.items")
		},
		"a database": func(p *pair) {
			p.was(sales)
			if o := p.through(p.options()); o.As != p.database+"_"+suffix || o.Rows != 4 {
				p.Errorf("it is %+v", o)
			}
		},
	})
}
