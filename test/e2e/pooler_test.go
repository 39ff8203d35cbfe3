//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Clients of a pooler see no error while the primary is changed on purpose: by a switchover, by the deletion of its
// Pod, by a restart of all servers. Then a pooler's Pod is replaced, another password counts without a restart, and
// with spec.pooler all goes that came with it.
func TestPooler(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3, "pooler: {}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	host := s.run("get", "secret", "shop-app", "-o", `go-template={{index .data "pool-host" | base64decode}}`)
	if want := naming.ServiceHost("shop-pool", string(s.Namespace)); host != want {
		t.Errorf("NAME-app leads to %q, want %q", host, want)
	}
	clients, logs := s.pooledClients("shop", 8), s.followLogs("shop", 3)
	change := func(what string, how func()) {
		t.Helper()
		err := clients.UntilHeld(s.ctx, logs.Texts, func() {
			s.writeMore(clients, 100)
			before := s.ready("shop")
			how()
			s.electedAfter(before)
			s.ready("shop")
			s.writeMore(clients, 100)
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: the longest transaction so far took %s", what, clients.Longest())
		must(t, outside.HandsOver.Judge(clients.Longest()))
	}
	change("a switchover", func() { s.toban("switchover", "shop") })
	change("a deleted Pod", func() { s.run("delete", "pod", s.ready("shop").Status.Primary, "--wait=false") })
	change("a restart", func() { s.toban("restart", "shop") })

	pod := strings.Fields(s.run("get", "pods", "-l", "toban.dev/component=pooler", "-o", "name"))[0]
	s.run("delete", pod)
	s.condition("shop", v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	s.writeMore(clients, 100) // those of the Pod have other sessions
	must(t, clients.LoseNothing(s.ctx))
	s.poolerTakesAnotherPassword("shop")
	s.run("annotate", "sampledb", "shop", naming.AnnotationFaultDrills+"="+naming.FaultDrillsAllowed)
	if out := s.toban("drill", "shop", "--fault", "PoolersKilled"); !strings.Contains(out, "passed: PoolersKilled") {
		t.Errorf("all poolers are killed: %s", out)
	} else {
		t.Log(out)
	}

	s.patch("shop", `{"pooler":null}`)
	s.ready("shop")
	for _, gone := range []string{"deployment/shop-pool", "service/shop-pool", "secret/shop-pool", "pdb/shop-pool"} {
		s.untilGone(gone)
	}
	s.until(func(ctx context.Context) error {
		keys, err := s.Kubectl(ctx, "get", "secret", "shop-app", "-o", "jsonpath={.data}")
		if err == nil && strings.Contains(keys, "pool-uri") {
			err = fmt.Errorf("NAME-app still has the pooler's connection strings")
		}
		return err
	})
	s.until(func(context.Context) error {
		roles, err := s.inside(s.ready("shop").Status.Primary,
			"SELECT count(*) FROM pg_roles WHERE rolname = 'toban_pooler'")
		if err == nil && roles != "0" {
			err = fmt.Errorf("the poolers' role is still there")
		}
		return err
	})
}

// Who only reads gets to the standbys and the readers by NAME-pool-ro, sees no error while the primary is changed on
// purpose, and gets to the primary where there is nobody else.
func TestPoolForReading(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 2, "readers: {count: 1}", "pooler: {instances: 1, readOnly: {instances: 1}}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	s.condition("shop", v1.ConditionReadersReady, "True", v1.ReasonReadersServe)
	uri := s.run("get", "secret", "shop-app", "-o", `go-template={{index .data "pool-ro-uri" | base64decode}}`)
	if !strings.Contains(uri, "@shop-pool-ro."+string(s.Namespace)+".svc:5432/app?") {
		t.Errorf("NAME-app has the string %q", uri)
	}
	reads := s.access("shop", naming.ReadPool("shop")).Patient()
	var sessions []*pgx.Conn
	for range 4 {
		session, err := reads.Connect(s.ctx)
		must(t, err)
		defer session.Close(s.ctx)
		sessions = append(sessions, session)
	}
	primary := s.ready("shop").Status.Primary
	s.servedBy(sessions, s.another("shop", primary), "shop-readers-0")

	before := s.ready("shop")
	s.toban("switchover", "shop")
	after := s.electedAfter(before).Status.Primary
	s.ready("shop")
	s.servedBy(sessions, s.another("shop", after), "shop-readers-0")

	s.patch("shop", `{"instances":1,"readers":null}`)
	s.ready("shop")
	s.servedBy(sessions, s.ready("shop").Status.Primary)

	s.patch("shop", `{"pooler":{"readOnly":null}}`)
	for _, gone := range []string{"deployment/shop-pool-ro", "service/shop-pool-ro", "pdb/shop-pool-ro"} {
		s.untilGone(gone)
	}
	must(t, s.access("shop", naming.Pool("shop")).Patient().Do(s.ctx, "SELECT 1"))
}

// another is the other one of two instances.
func (s *story) another(name, than string) string {
	if first := naming.Instance(name, 0); first != than {
		return first
	}
	return naming.Instance(name, 1)
}

// servedBy waits until transactions of all sessions, which are open side by side, are on these instances and readers.
func (s *story) servedBy(sessions []*pgx.Conn, want ...string) {
	s.Helper()
	slices.Sort(want)
	s.until(func(ctx context.Context) error {
		found := map[string]bool{}
		var open []pgx.Tx
		defer func() {
			for _, tx := range open {
				_ = tx.Rollback(ctx)
			}
		}()
		for _, session := range sessions {
			tx, err := session.Begin(ctx)
			must(s.T, err)
			open = append(open, tx)
			var server string
			must(s.T, tx.QueryRow(ctx, "SELECT current_setting('cluster_name')").Scan(&server))
			found[server] = true
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			return fmt.Errorf("who reads is on %v, want %v", got, want)
		}
		return nil
	})
}

// poolerTakesAnotherPassword rotates the password: it counts through the pooler, and the former one does not.
func (s *story) poolerTakesAnotherPassword(name string) {
	s.Helper()
	former := s.access(name, naming.Pool(name))
	pods := s.run("get", "pods", "-l", "toban.dev/component=pooler", "-o", "name")
	s.run("annotate", "sampledb", name, naming.AnnotationRotatePassword+"=now")
	s.until(func(ctx context.Context) error {
		now, err := s.Access(ctx, name, naming.Pool(name))
		if err == nil && now.Password == former.Password {
			err = fmt.Errorf("NAME-app still has the former password")
		}
		if err == nil {
			_, err = now.Ask(ctx, "SELECT 1")
		}
		return err
	})
	s.until(func(ctx context.Context) error {
		if _, err := former.Ask(ctx, "SELECT 1"); err == nil {
			return fmt.Errorf("the former password still lets in")
		}
		return nil
	})
	if after := s.run("get", "pods", "-l", "toban.dev/component=pooler", "-o", "name"); after != pods {
		s.Errorf("the poolers were replaced for another password: %s, before %s", after, pods)
	}
}

// followLogs follows the logs of all instances.
func (s *story) followLogs(name string, instances int) *outside.Logs {
	s.Helper()
	var pods []string
	for ordinal := range instances {
		pods = append(pods, naming.Instance(name, ordinal))
	}
	logs := s.FollowLogs(s.ctx, pods...)
	s.Cleanup(logs.Stop)
	return logs
}

// pooledClients has so many clients write through a pooler.
func (s *story) pooledClients(name string, clients int) *outside.Clients {
	s.Helper()
	access := s.access(name, naming.Pool(name)).Patient()
	running, err := outside.StartClients(s.ctx, clients, func(ctx context.Context) (*pgx.Conn, error) {
		return access.Connect(ctx)
	})
	must(s.T, err)
	s.Cleanup(running.Stop)
	return running
}

// writeMore waits until clients have written so many more rows.
func (s *story) writeMore(clients *outside.Clients, rows int) {
	s.Helper()
	must(s.T, clients.AwaitMore(s.ctx, patience, rows))
}

// untilGone waits until an object is gone.
func (s *story) untilGone(object string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, object)
		if err == nil && there {
			err = fmt.Errorf("%s is still there", object)
		}
		return err
	})
}
