//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/test/outside"
)

// A user breaks a database on purpose: by the example as it is, and by the command. A drill that misses its objective
// says so, one that is cancelled undoes what it has done, and nothing of any is left in the database.
func TestFaultDrills(t *testing.T) {
	s := begin(t)
	manifest, err := os.ReadFile("../../config/examples/drill.yaml")
	must(t, err)
	s.apply(string(manifest))
	s.run("wait", "faultdrill/kill-the-primary", "--for=condition=Complete", fmt.Sprintf("--timeout=%s", patience))
	var d v1.FaultDrill
	must(t, s.Get(s.ctx, "faultdrill/kill-the-primary", &d))
	if d.Status.Lost == nil || *d.Status.Lost != 0 || d.Status.Instance == "" || len(d.Status.Clients) != 2 {
		t.Errorf("it says %+v", d.Status)
	}
	s.Log(s.run("get", "faultdrills", "-o", "wide"))
	report := s.toban("drill", "report", "kill-the-primary")
	if !strings.Contains(report, "ServerKilled of "+d.Status.Instance) || !strings.Contains(report, "broken\n") {
		t.Errorf("its report says\n%s", report)
	}

	s.ready("drilled")
	out := s.toban("drill", "drilled", "--fault", "PodKilled", "--on", "Standby")
	s.Log(out)
	if !strings.Contains(out, "passed: PodKilled of drilled-") {
		t.Error("it has not passed")
	}
	out, err = s.Toban(s.ctx, "drill", "drilled", "--fault", "AgentKilled", "--max-outage", "1ms")
	if err == nil || !strings.Contains(err.Error(), "not passed") {
		t.Errorf("no outage at all: %v\n%s", err, out)
	}
	history := s.toban("drill", "drilled")
	for _, words := range []string{"kill-the-primary", "passed", v1.ReasonOutageTooLong} {
		if !strings.Contains(history, words) {
			t.Errorf("the history lacks %s:\n%s", words, history)
		}
	}
	s.cancelsADrill("drilled")
	s.until(func(ctx context.Context) error {
		access, err := s.Access(ctx, "drilled", "drilled")
		if err != nil {
			return err
		}
		left, err := access.Ask(ctx, "SELECT count(*)::text FROM pg_namespace WHERE nspname LIKE 'toban_drill%'")
		if err == nil && left != "0" {
			err = fmt.Errorf("%s schemas of drills are left", left)
		}
		return err
	})
}

// Databases are broken in the ways that TestFaultDrills leaves out: all instances at once, those of a zone, a full
// disk, a standby that is late, several faults at once, and several databases one after the other. In make test,
// test/local has the faults with real servers (faultdrill_test.go), test/virtual an election without the Kubernetes
// API, and test/api what the operator orders.
func TestLongFaultDrillsOfEveryKind(t *testing.T) {
	s := begin(t)
	for _, name := range []string{"shop", "blog"} {
		s.apply(bare(name, 3))
		s.run("annotate", "sampledb", name, "toban.dev/fault-drills=allowed")
		s.run("label", "sampledb", name, "drilled=together")
	}
	s.Log(s.toban("drill", "shop", "--fault", "ServerKilled", "--on", "All"))
	if d := s.drillOf(v1.FaultServerKilled); strings.Count(d.Status.Instance, "shop-") != 3 {
		t.Errorf("not all instances were broken: %s", d.Status.Instance)
	}
	zone := s.zone("shop", s.ready("shop").Status.Primary)
	s.Log(s.toban("drill", "shop", "--fault", "PodKilled", "--on", "Zone", "--zone", zone))
	s.Log(s.toban("drill", "shop", "--fault", "ReplayPaused", "--on", "Standby"))
	paused := s.drillOf(v1.FaultReplayPaused)
	reads := paused.Status.Clients[len(paused.Status.Clients)-1]
	if reads.Staleness == nil || reads.Staleness.Duration < paused.Spec.Duration.Duration/2 {
		t.Errorf("standbys answered as if nothing were: %+v", reads)
	}
	s.Log(s.toban("drill", "shop", "--fault", "DiskFull"))
	full := s.drillOf(v1.FaultDiskFull)
	if full.Status.Clients[0].Outage.Duration < full.Spec.Duration.Duration/2 {
		t.Errorf("writes were taken though the volume was full: %+v", full.Status.Clients)
	}
	s.drillsTogether("shop")
	out, err := s.Toban(s.ctx, "drill", "-l", "drilled=together", "--fault", "PodDeleted", "--max-outage", "1ms")
	s.Log(out)
	if err == nil || !strings.Contains(err.Error(), "2 of 2 have not passed: blog, shop") {
		t.Errorf("no outage at all, of two databases: %v", err)
	}
}

// drillsTogether breaks a database by several faults at once. While the Kubernetes API is away, the primary's server is
// killed: who knows the hosts writes again, and the Service leads to the new primary when the API is back. Then the
// primary's Pod is killed while a standby is late.
func (s *story) drillsTogether(db string) {
	s.Helper()
	s.Log(s.toban("drill", db, "--fault", "APIAway", "--on", "All", "--meanwhile", "ServerKilled=Primary",
		"--duration", "1m", "--observe", "90s", "--abort-after", "3m", "--max-outage", "2m"))
	away := s.drillOf(v1.FaultAPIAway)
	half := away.Spec.Duration.Duration / 2
	if service, hosts := away.Status.Clients[0], away.Status.Clients[1]; service.Way != "Service" ||
		service.Outage.Duration < half || hosts.Way != "Hosts" || hosts.Outage.Duration > half {
		s.Errorf("who does not need the API has waited for it, or the Service has not: %+v", away.Status.Clients)
	}
	if killed := away.Status.Meanwhile; len(killed) != 1 || strings.Contains(killed[0], ",") ||
		!strings.Contains(away.Status.Instance, killed[0]) {
		s.Errorf("it has broken %q, and %q meanwhile", away.Status.Instance, killed)
	}
	if now := s.ready(db).Status.Primary; len(away.Status.Meanwhile) > 0 && now == away.Status.Meanwhile[0] {
		s.Errorf("%s leads, whose server was killed", now)
	}
	s.Log(s.toban("drill", db, "--fault", "PodKilled", "--meanwhile", "ReplayPaused=Standby", "--max-outage", "1m"))
}

// The store of an archive gives no instance an answer while the primary's server is killed: nobody waits for it, and
// the drill passes when the archive has caught up. Then the leader of the application on that database is killed.
// TestFaultDrills has a drill in make test, test/local and test/api have both faults.
func TestLongFaultDrillsOfAnArchiveAndAnApplication(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	s.apply(withLeader + "  database: {kind: SampleDB, name: shop}\n")
	for _, object := range []string{"sampledb/shop", "myapp/led"} {
		s.run("annotate", object, "toban.dev/fault-drills=allowed")
	}
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.apply(`
apiVersion: toban.dev/v1
kind: FaultDrill
metadata: {name: away}
spec:
  sampleDB: shop
  fault: ArchiveAway
  instance: All
  duration: 90s
  observe: 2m
  meanwhile: [{fault: ServerKilled, instance: Primary}]
`)
	said := s.condition("shop", v1.ConditionArchiving, "False", v1.ReasonArchiveFailing)
	if !strings.Contains(said, "by a FaultDrill") {
		t.Errorf("while the store is away it says %q", said)
	}
	s.run("wait", "faultdrill/away", "--for=condition=Complete", fmt.Sprintf("--timeout=%s", patience))
	var away v1.FaultDrill
	must(t, s.Get(s.ctx, "faultdrill/away", &away))
	if passed := meta.FindStatusCondition(away.Status.Conditions, v1.ConditionPassed); passed == nil ||
		passed.Status != "True" || away.Status.WALAtEnd == "" || *away.Status.Lost != 0 {
		t.Errorf("it says %+v", away.Status)
	} else {
		t.Log(passed.Message)
	}
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)

	s.run("wait", "myapp/led", "--for=condition=Ready", fmt.Sprintf("--timeout=%s", patience))
	s.Log(s.toban("drill", "shop", "--fault", "LeaderKilled", "--max-outage", "10s"))
	killed := s.drillOf(v1.FaultLeaderKilled).Status.Instance
	now := s.run("get", "myapp", "led", "-o", "jsonpath={.status.leader}")
	if !strings.HasPrefix(killed, "led-") || now == "" || now == killed {
		t.Errorf("the Pod %q was killed, and %q leads", killed, now)
	}
}

// A person breaks a database himself while a drill measures, and gives another drill a query that ends it. In
// make test, test/api has both, and test/local asks the query of a real server.
func TestLongADrillByHandAndOneThatAQueryEnds(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3))
	s.run("annotate", "sampledb", "shop", "toban.dev/fault-drills=allowed")
	primary := s.ready("shop").Status.Primary
	sh := s.shell()
	if _, err := sh.try("kubectl toban drill shop --fault NodeDrained"); err == nil ||
		!strings.Contains(err.Error(), "--fault ByHand") {
		t.Errorf("a node is refused with %v", err)
	}
	name := drillThatGoesOn(s, "--fault", "ByHand", "--max-outage", "1ms")
	s.drillIs(name, func(d v1.FaultDrillStatus) bool { return d.StruckAt != nil })
	s.run("delete", "pod", primary, "--grace-period=0", "--force")
	s.drillIs(name, func(d v1.FaultDrillStatus) bool { return d.CompletedAt != nil })
	report := s.toban("drill", "report", name)
	t.Log(report)
	if !strings.Contains(report, "ByHand of shop\nnot passed: ") {
		t.Error("it has measured nothing")
	}
	if page := s.toban("drill", "report", name, "-o", "html"); strings.Count(page, "<rect ") != 2 {
		t.Errorf("the page is\n%s", page)
	}

	s.ready("shop")
	s.sql("shop", "CREATE TABLE failures (n int)")
	name = drillThatGoesOn(s, "--fault", "ReplayPaused", "--on", "Standby", "--duration", "3m", "--observe", "4m",
		"--abort-when", "SELECT count(*) > 0 FROM public.failures", "--at-once", "1")
	s.drillIs(name, func(d v1.FaultDrillStatus) bool { return d.StruckAt != nil })
	s.sql("shop", "INSERT INTO failures VALUES (1)")
	s.drillIs(name, func(d v1.FaultDrillStatus) bool { return d.CompletedAt != nil })
	if report = s.toban("drill", "report", name); !strings.Contains(report, "given up, because the query") {
		t.Errorf("the query has not ended it:\n%s", report)
	}
}

// drillThatGoesOn begins a drill of shop, and returns its name.
func drillThatGoesOn(s *story, flags ...string) string {
	s.Helper()
	name, _, _ := strings.Cut(s.toban(append([]string{"drill", "shop", "--wait=false"}, flags...)...), ":")
	return name
}

// drillIs waits until a drill is so.
func (s *story) drillIs(name string, so func(v1.FaultDrillStatus) bool) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		var d v1.FaultDrill
		err := s.Get(ctx, "faultdrill/"+name, &d)
		if err == nil && !so(d.Status) {
			err = fmt.Errorf("the drill is %+v", d.Status)
		}
		return err
	})
}

// A database is broken by the schedule of its spec, again and again, and its condition says what came of it.
func TestLongDrillsByASchedule(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3, `drills: {schedule: "* * * * *", faults: [PodKilled, VolumeLost], keep: 1}`))
	s.condition("shop", v1.ConditionDrillsPassed, "False", v1.ReasonDrillNotAllowed)
	s.ready("shop")
	s.run("annotate", "sampledb", "shop", "toban.dev/fault-drills=allowed")
	faults := map[string]bool{}
	s.until(func(ctx context.Context) error {
		var all v1.FaultDrillList
		if err := s.Get(ctx, "faultdrill", &all); err != nil {
			return err
		}
		over := 0
		for _, d := range all.Items {
			if d.Status.Lost != nil {
				faults[string(d.Spec.Fault)] = true
				over++
			}
		}
		if len(faults) < 2 || over > 1 {
			return fmt.Errorf("there was %v, and %d are kept that are over", faults, over)
		}
		return nil
	})
	s.Log(s.condition("shop", v1.ConditionDrillsPassed, "True", v1.ReasonLastDrillPassed))
}

// drillOf is the drill with a fault, which must have a result.
func (s *story) drillOf(fault v1.FaultDrillFault) *v1.FaultDrill {
	s.Helper()
	var all v1.FaultDrillList
	must(s.T, s.Get(s.ctx, "faultdrill", &all))
	for i := range all.Items {
		if d := &all.Items[i]; d.Spec.Fault == fault && len(d.Status.Clients) > 0 {
			return d
		}
	}
	s.Fatalf("no drill with the fault %s has a result", fault)
	return nil
}

// cancelsADrill has a standby hang for long, and takes that back.
func (s *story) cancelsADrill(db string) {
	s.Helper()
	s.ready(db)
	s.apply(fmt.Sprintf(`
apiVersion: toban.dev/v1
kind: FaultDrill
metadata: {name: long}
spec: {sampleDB: %s, fault: ServerHung, instance: Standby, duration: 5m, observe: 6m}
`, db))
	s.drillIs("long", func(d v1.FaultDrillStatus) bool { return d.StruckAt != nil })
	s.run("patch", "faultdrill", "long", "--type=merge", "-p", `{"spec":{"cancel":true}}`)
	s.drillIs("long", func(d v1.FaultDrillStatus) bool { return d.Phase == "Cancelled" })
	s.ready(db)
	s.until(func(ctx context.Context) error {
		now, err := s.SampleDB(ctx, db)
		if err != nil {
			return err
		}
		return outside.Condition(now, v1.ConditionDurable, "True", v1.ReasonDurable)
	})
}
