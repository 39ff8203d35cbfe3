//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Readers answer what NAME-ro is asked, follow a new primary, and go with their volumes, and nothing else does. Ready
// is as if there were none. An autoscaler finds a StatefulSet whose number it may change.
func TestReaders(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 2, "resources: {requests: {cpu: 10m}}", "readers: {count: 2, only: true}"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")
	s.condition("shop", v1.ConditionReadersReady, "True", v1.ReasonReadersServe)
	s.readOnlyLeadsTo("shop", "shop-readers-0", "shop-readers-1")
	s.readerHas("shop", 0, "1000")

	before, check := s.ready("shop"), s.writing("shop")
	s.run("delete", "pod", before.Status.Primary, "--wait=false")
	s.electedAfter(before)
	s.ready("shop")
	check(outside.HandsOver)
	s.sql("shop", "INSERT INTO kept VALUES (1001)")
	s.readerHas("shop", 1, "1001")

	s.leavesOneThatIsLate("shop", naming.Reader("shop", 1), naming.Reader("shop", 0))
	s.patch("shop", `{"readers":{"count":null,"autoscale":{"min":1,"max":3}}}`)
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "hpa/shop-readers")
		if err == nil && !there {
			err = fmt.Errorf("there is no HorizontalPodAutoscaler")
		}
		return err
	})
	s.run("scale", "statefulset/shop-readers", "--replicas=1") // as the autoscaler does
	s.readOnlyLeadsTo("shop", "shop-readers-0")
	s.readerClaim("shop", 1, false)

	s.patch("shop", `{"readers":null}`)
	s.ready("shop")
	s.readerClaim("shop", 0, false)
	s.claim("shop", 0, true)
	s.claim("shop", 1, true)
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "statefulset/shop-readers")
		if err == nil && there {
			err = fmt.Errorf("the readers are still there")
		}
		return err
	})
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "1001" {
		t.Errorf("kept has %s rows, want 1001", n)
	}
}

// leavesOneThatIsLate has a standby be late: clients that read get to the other one alone, until it is late no more.
func (s *story) leavesOneThatIsLate(name, late, other string) {
	s.Helper()
	s.patch(name, `{"service":{"readMaxLag":"2s"}}`)
	_, err := s.inside(late, "SELECT pg_wal_replay_pause()")
	must(s.T, err)
	s.sql(name, "CREATE TABLE later ()")
	s.readOnlyLeadsTo(name, other)
	s.condition(name, v1.ConditionReady, "True", v1.ReasonReady)
	_, err = s.inside(late, "SELECT pg_wal_replay_resume()")
	must(s.T, err)
	both := []string{late, other}
	slices.Sort(both)
	s.readOnlyLeadsTo(name, both...)
}

// readOnlyLeadsTo waits until the Service NAME-ro leads to exactly these Pods.
func (s *story) readOnlyLeadsTo(name string, pods ...string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "get", "endpointslices",
			"-l", "kubernetes.io/service-name="+naming.ReadOnlyService(name),
			"-o", `jsonpath={range .items[*].endpoints[?(@.conditions.ready==true)]}{.targetRef.name}{"\n"}{end}`)
		found := strings.Fields(out)
		slices.Sort(found)
		if err == nil && !slices.Equal(found, pods) {
			err = fmt.Errorf("%s leads to %v, want %v", naming.ReadOnlyService(name), found, pods)
		}
		return err
	})
}

// readerHas waits until a reader has so many rows.
func (s *story) readerHas(name string, ordinal int, rows string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "exec", naming.Reader(name, ordinal), "--", "psql", "-U", "postgres",
			"-XAtc", "SELECT count(*) FROM kept", "app")
		if got := strings.TrimSpace(out); err == nil && got != rows {
			err = fmt.Errorf("reader %d has %s rows, want %s", ordinal, got, rows)
		}
		return err
	})
}

// readerClaim waits until the claim of a reader is there, or is gone.
func (s *story) readerClaim(name string, ordinal int, want bool) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "pvc/"+naming.ReaderClaim(name, ordinal))
		if err == nil && there != want {
			err = fmt.Errorf("the claim of reader %d is there: %v, want %v", ordinal, there, want)
		}
		return err
	})
}
