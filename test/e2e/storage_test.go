//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// A StorageClass that does not exist is named in the condition, and another one mends it. What can't change is refused
// also of a SampleDB that does not run.
func TestMissingStorageClass(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(bare("shop", 1), "{size: 512Mi}", "{size: 512Mi, storageClassName: no-such-class}", 1))
	message := s.condition("shop", v1.ConditionStorageReady, "False", v1.ReasonStorageClassNotFound)
	if !strings.Contains(message, "no-such-class") {
		t.Errorf("the message %q does not name the class", message)
	}
	_, err := s.Kubectl(s.ctx, "patch", "sampledb", "shop", "--type=merge", "-p", `{"spec":{"version":16}}`)
	if err == nil || !strings.Contains(err.Error(), "can't go below the major version of the data") {
		t.Errorf("a lower version gives %v", err)
	}
	s.patch("shop", `{"storage":{"storageClassName":null}}`)
	s.ready("shop")
	s.run("delete", "sampledb", "shop", "--timeout=2m")
}

// grows gives the volumes of a SampleDB a larger size: they get it while the servers run.
func (s *story) grows(name, size string) {
	s.Helper()
	db := s.ready(name)
	before := s.startTime(db.Status.Primary)
	s.patch(name, `{"storage":{"size":"`+size+`"}}`)
	s.condition(name, v1.ConditionStorageReady, "True", v1.ReasonBound)
	for ordinal := range db.Spec.Instances {
		s.until(func(ctx context.Context) error {
			var claim corev1.PersistentVolumeClaim
			err := s.Get(ctx, "pvc/"+naming.Claim(name, int(ordinal)), &claim)
			if has := claim.Status.Capacity[corev1.ResourceStorage]; err == nil && has.String() != size {
				err = fmt.Errorf("the volume of instance %d has %s", ordinal, has.String())
			}
			return err
		})
	}
	s.ready(name)
	if now := s.startTime(db.Status.Primary); now != before {
		s.Errorf("the primary restarted (%s, before %s) for a larger volume", now, before)
	}
}

// Small volumes are filled by a client that inserts all the time: they grow by themselves up to the limit, in several
// steps, and no statement fails. At the limit that is said; when there is room again, that too.
// (TestVolumesGrowByThemselvesUpToTheLimit of test/api and TestAVolumeThatGetsFullAtOnce of test/local touch the same.)
func TestLongVolumesGrowByThemselves(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(bare("shop", 2), "{size: 512Mi}", "{size: 512Mi, grow: {limit: 768Mi}}", 1))
	db := s.ready("shop")
	before := s.startTime(db.Status.Primary)
	s.sql("shop", "CREATE TABLE filled (words text)")
	access := s.access("shop", naming.ReadWriteService("shop"))
	ctx, fails := context.WithCancelCause(s.ctx)
	filling, end := context.WithCancel(ctx)
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		if err := fill(filling, access, 250*time.Millisecond); err != nil {
			fails(fmt.Errorf("the client that fills: %w", err))
		}
	}()
	err := outside.Until(ctx, 3*patience, func(ctx context.Context) error { // as long as a slow disk needs
		db, err := s.SampleDB(ctx, "shop")
		if err != nil {
			return err
		}
		return outside.Condition(db, v1.ConditionHasRoom, "False", v1.ReasonGrowthLimitReached)
	})
	end()
	<-filled
	must(t, errors.Join(context.Cause(ctx), err))
	db, err = s.SampleDB(s.ctx, "shop")
	must(t, err)
	if db.Status.Storage.Size != "768Mi" || db.Spec.Storage.Size != "512Mi" {
		t.Errorf("the size in force is %s, that of the spec %s", db.Status.Storage.Size, db.Spec.Storage.Size)
	}
	for ordinal := range 2 {
		var claim corev1.PersistentVolumeClaim
		must(t, s.Get(s.ctx, "pvc/"+naming.Claim("shop", ordinal), &claim))
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.String() != "768Mi" {
			t.Errorf("the volume of instance %d has %s", ordinal, has.String())
		}
	}
	if now := s.startTime(db.Status.Primary); now != before {
		t.Errorf("the primary restarted (%s, before %s)", now, before)
	}
	events := s.run("get", "events", "--field-selector=reason=Growing", "-o", "custom-columns=MESSAGE:.message")
	t.Logf("the volumes grew:\n%s", events)
	if strings.Count(events, "grow by themselves to") < 2 {
		t.Error("they did not grow in steps")
	}
	status := s.toban("status", "shop")
	t.Logf("kubectl toban status:\n%s", status)
	for _, words := range []string{"data-shop-0", "they grow by themselves up to 768Mi", "not known yet"} {
		if !strings.Contains(status, words) {
			t.Errorf("the status does not say %q", words)
		}
	}
	s.sql("shop", "TRUNCATE filled")
	s.condition("shop", v1.ConditionHasRoom, "True", v1.ReasonRoomEnough)
	s.ready("shop")
}

// Volumes that may not grow are filled by a client. The primary takes no writes before they are full: it says so, reads
// go on, and nothing restarts. It takes writes again when rows are deleted as the condition says, or when the volumes
// are larger. (TestAVolumeThatGetsFullAtOnce and TestAVolumeThatIsFull of test/local touch the same.)
func TestLongVolumesThatGetFull(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 2))
	db := s.ready("shop")
	before := s.startTime(db.Status.Primary)
	s.sql("shop", "CREATE TABLE filled (words text); CREATE TABLE few AS SELECT 7 AS n")
	s.fills("shop")
	psql := exec.CommandContext(s.ctx,
		"kubectl", "toban", "psql", "shop", "--namespace", string(s.Namespace), "--", "-q")
	psql.Stdin = strings.NewReader("SET default_transaction_read_only = off; TRUNCATE public.filled;")
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("kubectl toban psql: %v: %s", err, out)
	}
	s.written("shop")
	s.fills("shop")
	s.patch("shop", `{"storage":{"size":"1Gi"}}`)
	s.written("shop")
	if now := s.ready("shop").Status; now.Primary != db.Status.Primary || now.Term != db.Status.Term {
		t.Errorf("%s leads in term %d, before %s did in term %d",
			now.Primary, now.Term, db.Status.Primary, db.Status.Term)
	}
	if now := s.startTime(db.Status.Primary); now != before {
		t.Errorf("the primary restarted (%s, before %s)", now, before)
	}
}

// fills fills the volumes of a SampleDB, until it takes no writes and says so. It fills on meanwhile: WAL that a slow
// disk has held back may go when writes are refused, and there is room for more.
func (s *story) fills(name string) {
	s.Helper()
	access := s.access(name, naming.ReadWriteService(name))
	filling, end := context.WithCancel(s.ctx)
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		s.fillsOn(filling, access)
	}()
	defer func() { end(); <-filled }()
	message := s.condition(name, v1.ConditionAvailable, "False", v1.ReasonWritesRefused)
	s.Logf("it says: %s", message)
	for _, condition := range []string{v1.ConditionHasRoom, v1.ConditionReady} {
		s.condition(name, condition, "False", v1.ReasonWritesRefused)
	}
	if n := s.ask(name, "SELECT n::text FROM few WHERE n = 7"); n != "7" {
		s.Errorf("a read gives %q", n)
	}
	s.until(func(ctx context.Context) error {
		err := access.Patient().Do(ctx, "INSERT INTO few VALUES (9)")
		if err == nil || !strings.Contains(err.Error(), "cannot execute INSERT in a read-only transaction") {
			return fmt.Errorf("a write gives %v", err) //nolint:errorlint // there may be none
		}
		return nil
	})
	s.Logf("kubectl toban status:\n%s", s.toban("status", name))
}

// fillsOn fills the volumes of a SampleDB until ctx ends, however often its writes are refused.
func (s *story) fillsOn(ctx context.Context, access outside.Access) {
	for told := ""; ctx.Err() == nil; {
		if err := fill(ctx, access, 25*time.Millisecond); err != nil && err.Error() != told {
			told = err.Error()
			s.Logf("the client that fills: %v", err)
		}
	}
}

// written waits until a SampleDB takes writes again.
func (s *story) written(name string) {
	s.Helper()
	s.condition(name, v1.ConditionAvailable, "True", v1.ReasonPrimaryReady)
	s.sql(name, "INSERT INTO few VALUES (10)")
}

// An application has made a slot and does not read it, and the database writes: the condition and the status say which
// slot it is, how much it keeps, and what to do. That done, nothing is said any more. In
// make test, test/local has it with real servers (keptwal_test.go), and test/api what the operator says.
func TestLongASlotThatNobodyReads(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(bare("shop", 1), "{size: 512Mi}", "{size: 1Gi, grow: {limit: 1Gi}}", 1))
	s.ready("shop")
	_, err := s.inside("shop-0", "SELECT pg_create_logical_replication_slot('warehouse', 'pgoutput')")
	must(t, err)
	s.condition("shop", v1.ConditionHasRoom, "True", v1.ReasonRoomEnough)
	s.sql("shop", "CREATE TABLE filled (words text)")
	for range 16 { // with a limit of 256 MiB, half of which is told
		s.sql("shop", "INSERT INTO filled SELECT repeat(md5(random()::text), 32) FROM generate_series(1, 10000)")
	}
	message := s.condition("shop", v1.ConditionHasRoom, "False", v1.ReasonWALKept)
	t.Logf("it says: %s", message)
	status := s.toban("status", "shop")
	t.Logf("kubectl toban status:\n%s", status)
	drop := "SELECT pg_drop_replication_slot('warehouse')"
	for _, words := range []string{
		"shop-0 keeps ", "of WAL for the replication slot warehouse, which nobody reads", "(max_slot_wal_keep_size)",
		`kubectl exec shop-0 -- psql -U postgres -c "` + drop + `"`,
	} {
		if !strings.Contains(message, words) || !strings.Contains(status, words) {
			t.Errorf("the condition, or the status, does not say %q", words)
		}
	}
	s.run("exec", "shop-0", "--", "psql", "-U", "postgres", "-c", drop)
	s.condition("shop", v1.ConditionHasRoom, "True", v1.ReasonRoomEnough)
	events := s.run("get", "events", "-o", "custom-columns=REASON:.reason,MESSAGE:.message")
	for _, words := range []string{"VolumeShort", "WALKept: shop-0 keeps", "RoomAgain"} {
		if !strings.Contains(events, words) {
			t.Errorf("no event says %q:\n%s", words, events)
		}
	}
	s.ready("shop")
}

// fill inserts a MiB in each interval until ctx ends, or an insert fails.
func fill(ctx context.Context, access outside.Access, interval time.Duration) error {
	conn, err := access.Patient().Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		_, err := conn.Exec(ctx,
			"INSERT INTO filled SELECT repeat(md5(random()::text), 32) FROM generate_series(1, 1000)")
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}
