//go:build e2e

package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Under load, a SampleDB is deleted while the second side of its upgrade serves, and is brought back: with the new
// version, every acknowledged row, and no trace of the sides, so that the application can change its schema.
// TestDeletedWhileTheSecondSideServes has the steps, without servers.
func TestLongBlueGreenDeleted(t *testing.T) {
	s := begin(t)
	s.apply(twoSided("shop", 1))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", "")
	var access atomic.Pointer[outside.Access] // that of the SampleDB which is there
	look := func() outside.Access {
		now := s.access("shop", naming.ReadWriteService("shop"))
		access.Store(&now)
		return now
	}
	database := look().Database
	clients, err := outside.StartClients(s.ctx, 1, func(ctx context.Context) (*pgx.Conn, error) {
		return access.Load().Connect(ctx)
	})
	must(t, err)
	t.Cleanup(clients.Stop)
	before := s.traces("shop", database)
	pause := s.watchPauses(clients)

	s.patch("shop", `{"version":18}`)
	s.sides("shop", v1.SidesChanged, v1.SideGreen)
	s.clientsAreOn("shop", naming.Green("shop"), 18)
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	s.bearable("the change of sides", pause())

	s.run("delete", "sampledb", "shop", "--timeout=4m")
	list := s.toban("undelete")
	if !strings.Contains(list, naming.FinalBackup(naming.Green("shop"), "")) ||
		strings.Contains(list, naming.FinalBackup("shop", "")) {
		t.Errorf("undelete lists\n%s", list)
	}
	t.Log(s.toban("undelete", "shop"))
	s.ready("shop")
	again := look()
	s.clientsAreOn("shop", "shop", 18)
	must(t, clients.AwaitMore(s.ctx, patience, 50))
	must(t, clients.LoseNothing(s.ctx))
	t.Logf("%d rows acknowledged", clients.Written())
	must(t, again.Patient().Do(s.ctx, "CREATE TABLE later (n int)"))
	s.sql("shop", "DROP TABLE later")
	if after := s.traces("shop", database); after != before {
		t.Errorf("the databases listed\n%s\nand now\n%s", before, after)
	}
}
