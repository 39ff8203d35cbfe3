//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// Three instances have their WAL on volumes of their own. One that leads is lost, under load; then a slot that nobody
// reads fills the WAL volume of the next. It takes no writes before that is full, and again when the volumes are
// larger, without a restart or an election. (In make test, test/local has real servers that do so, and test/api what
// the operator does with the claims.)
func TestLongWALOnVolumesOfItsOwn(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(bare("shop", 3, `postgresql: {parameters: {max_slot_wal_keep_size: "-1"}}`),
		"{size: 512Mi}", "{size: 1Gi, wal: {size: 512Mi}}", 1))
	first := s.ready("shop").Status.Primary
	for ordinal := range 3 {
		instance := naming.Instance("shop", ordinal)
		link := s.run("exec", instance, "--", "readlink", "-f", "/pgdata/data/pg_wal")
		if !strings.HasPrefix(link, naming.PathWAL+"/") {
			t.Errorf("pg_wal of %s is %q", instance, link)
		}
	}
	writer, err := outside.StartWriter(s.ctx, s.access("shop", "shop"))
	must(t, err)
	t.Cleanup(writer.Stop)
	s.rowsAtLeast("shop", 50)
	s.run("delete", "pod", first, "--grace-period=0", "--force")
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err == nil && (db.Status.Primary == first || db.Status.Primary == "") {
			err = fmt.Errorf("%q leads", db.Status.Primary)
		}
		return err
	})
	s.rowsAtLeast("shop", s.count("shop")+50)
	db := s.ready("shop")
	writer.Stop()
	s.inTime(writer, outside.Lost)
	writer.Resume(s.ctx) // later writes are refused for a while
	before := s.startTime(db.Status.Primary)

	_, err = s.inside(db.Status.Primary, "SELECT pg_create_logical_replication_slot('warehouse', 'pgoutput')")
	must(t, err)
	s.sql("shop", "CREATE TABLE churned (words text)")
	churning, end := context.WithCancel(s.ctx)
	churned := make(chan struct{})
	access := s.access("shop", naming.ReadWriteService("shop"))
	go func() { defer close(churned); churn(churning, access) }()
	message := s.condition("shop", v1.ConditionAvailable, "False", v1.ReasonWritesRefused)
	t.Logf("it says: %s", message)
	volume := naming.WALClaimOf(db.Status.Primary)
	if !strings.Contains(message, "before its volume "+volume+" is full") ||
		!strings.Contains(message, "storage.wal.size") {
		t.Errorf("it does not name %s", volume)
	}
	status := s.toban("status", "shop")
	t.Logf("kubectl toban status:\n%s", status)
	if !strings.Contains(status, "wal-shop-0") {
		t.Error("the status has no line for a WAL volume")
	}
	end()
	<-churned
	s.patch("shop", `{"storage":{"wal":{"size":"1Gi"}}}`)
	s.condition("shop", v1.ConditionAvailable, "True", v1.ReasonPrimaryReady)
	s.rowsAtLeast("shop", s.count("shop")+50)
	for ordinal := range 3 {
		s.until(func(ctx context.Context) error {
			var claim corev1.PersistentVolumeClaim
			err := s.Get(ctx, "pvc/"+naming.WALClaim("shop", ordinal), &claim)
			if has := claim.Status.Capacity[corev1.ResourceStorage]; err == nil && has.String() != "1Gi" {
				err = fmt.Errorf("the WAL volume of instance %d has %s", ordinal, has.String())
			}
			return err
		})
	}
	_, err = s.inside(db.Status.Primary, "SELECT pg_drop_replication_slot('warehouse')")
	must(t, err)
	now := s.ready("shop").Status
	if now.Primary != db.Status.Primary || now.Term != db.Status.Term {
		t.Errorf("%s leads in term %d, before %s did in term %d", now.Primary, now.Term, db.Status.Primary,
			db.Status.Term)
	}
	if at := s.startTime(db.Status.Primary); at != before {
		t.Errorf("the primary restarted (%s, before %s)", at, before)
	}
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if t.Logf("no write for %s while the WAL volume was full", writer.Outage()); len(lost) > 0 {
		t.Errorf("%d acknowledged rows are lost, from %d", len(lost), lost[0])
	}
}

// churn writes much WAL and little data, until ctx ends, however often that is refused.
func churn(ctx context.Context, access outside.Access) {
	for ctx.Err() == nil {
		err := access.Patient().Do(ctx, "INSERT INTO churned SELECT repeat(md5(random()::text), 32) "+
			"FROM generate_series(1, 4000)")
		if err == nil {
			err = access.Patient().Do(ctx, "TRUNCATE churned")
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // it goes on where writes are taken again
			}
		}
	}
}
