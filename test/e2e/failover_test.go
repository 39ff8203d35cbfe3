//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// electedAfter waits until an instance takes writes that was elected since. On a busy machine that can be the one of
// before, by one more election.
func (s *story) electedAfter(before v1.SampleDB) v1.SampleDB {
	s.Helper()
	var now v1.SampleDB
	s.until(func(ctx context.Context) (err error) {
		if now, err = s.SampleDB(ctx, before.Name); err != nil {
			return err
		}
		if now.Status.Primary == "" || now.Status.Term <= before.Status.Term {
			return fmt.Errorf("the primary is %q in term %d, as before", now.Status.Primary, now.Status.Term)
		}
		return nil
	})
	return now
}

// writing begins to write through the Service; what must be true of it in the end is checked by the function that is
// returned: nothing is lost, and what has happened kept nobody from writing for longer than it may.
func (s *story) writing(name string) func(outside.Bound) {
	s.Helper()
	writer, err := outside.StartWriter(s.ctx, s.access(name, name))
	must(s.T, err)
	s.Cleanup(writer.Stop)
	s.rowsAtLeast(name, 50)
	return func(bound outside.Bound) {
		s.Helper()
		s.rowsAtLeast(name, s.count(name)+50)
		writer.Stop()
		lost, err := writer.Lost(s.ctx)
		must(s.T, err)
		if len(lost) > 0 {
			s.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
		}
		s.inTime(writer, bound)
	}
}

// inTime tells for how long nobody could write, of a writer that was stopped, and fails where that is longer than what
// has happened may take.
func (s *story) inTime(writer *outside.Writer, bound outside.Bound) {
	s.Helper()
	s.Logf("no write for %s; %d rows acknowledged", writer.Outage(), writer.Acknowledged())
	if err := bound.Judge(writer.Outage()); err != nil {
		s.Error(err)
	}
}

// With two instances both have each commit. When one is gone, the other goes on
// alone, and that is on record in the Lease before it does.
func TestTwoInstancesWithTheAPIAsWitness(t *testing.T) {
	s := begin(t)
	s.apply(bare("pair", 2))
	first := s.ready("pair").Status.Primary
	s.condition("pair", v1.ConditionDurable, "True", v1.ReasonDurable)
	check := s.writing("pair")
	other := naming.Instance("pair", 0)
	if first == other {
		other = naming.Instance("pair", 1)
	}

	// The standby goes, and can't come back for a while.
	s.run("cordon", s.node(other))
	t.Cleanup(func() { s.run("uncordon", s.node2(other)) })
	s.run("delete", "pod", other, "--wait=false", "--grace-period=0", "--force")
	s.condition("pair", v1.ConditionDurable, "False", v1.ReasonWeakened)
	s.rowsAtLeast("pair", s.count("pair")+50)
	if record := s.run("get", "lease", "pair",
		"-o", "jsonpath={.metadata.annotations}"); strings.Contains(record, other+".") {
		t.Errorf("the record still counts on %s: %s", other, record)
	}
	s.run("uncordon", s.node2(other))
	s.condition("pair", v1.ConditionDurable, "True", v1.ReasonDurable)

	// Now the primary goes in the same way: the standby has the witness's vote.
	before := s.ready("pair")
	first = before.Status.Primary
	s.run("cordon", s.node(first))
	t.Cleanup(func() { s.run("uncordon", s.node2(first)) })
	s.run("delete", "pod", first, "--wait=false", "--grace-period=0", "--force")
	s.electedAfter(before)
	s.run("uncordon", s.node2(first))
	s.ready("pair")
	check(outside.Lost)
}

// node is where a Pod runs, node2 where its volume is, which is the same and is
// known when there is no Pod.
func (s *story) node(pod string) string {
	s.Helper()
	return s.run("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}

func (s *story) node2(pod string) string {
	s.Helper()
	return s.run("get", "pvc", naming.VolumeData+"-"+pod,
		"-o", `jsonpath={.metadata.annotations.volume\.kubernetes\.io/selected-node}`)
}

// One annotation has another instance take over, and the one that led before follows it. Another annotation gives the
// application another password. Both are done under load.
func TestSwitchoverAndRotation(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	s.ready("shop")
	check := s.writing("shop")
	wanted := s.switchOver("shop")
	s.ready("shop")
	check(outside.HandsOver)

	// One that is none is refused with a sentence, and nothing happens.
	s.run("annotate", "sampledb", "shop", naming.AnnotationSwitchover+"=nobody")
	s.until(func(context.Context) error {
		events := s.run("get", "events", "--field-selector", "reason=SwitchoverRefused",
			"-o", "jsonpath={.items[*].note}{.items[*].message}")
		if !strings.Contains(events, "nobody") {
			return fmt.Errorf("no event says that nobody is no instance: %q", events)
		}
		return nil
	})
	if now := s.ready("shop").Status.Primary; now != wanted {
		t.Errorf("%s leads after a request that was refused", now)
	}
	s.rotates("shop")
}

// mostUnasked is how often the primary may change in a switchover without being asked to, as on a machine that is too
// busy for the new one to be heard.
const mostUnasked = 1

// switchOver asks for another primary, and says which one leads then. Where one more election follows, it asks once
// more.
func (s *story) switchOver(name string) string {
	s.Helper()
	for unasked := 1; ; unasked++ {
		before := s.ready(name)
		wanted := naming.Instance(name, 2)
		if before.Status.Primary == wanted {
			wanted = naming.Instance(name, 1)
		}
		s.run("annotate", "sampledb", name, naming.AnnotationSwitchover+"="+wanted)
		now := s.electedAfter(before)
		s.until(func(ctx context.Context) error {
			db, err := s.SampleDB(ctx, name)
			if left := db.Annotations[naming.AnnotationSwitchover]; err == nil && left != "" {
				err = fmt.Errorf("the annotation is still there: %s", left)
			}
			return err
		})
		switch {
		case now.Status.Primary == wanted:
			return wanted
		case now.Status.Term == before.Status.Term+1:
			s.Fatalf("%s leads, and %s was asked for", now.Status.Primary, wanted)
		case unasked > mostUnasked:
			s.Fatalf("the primary of %s has changed %d times without being asked to, in as many switchovers: %s was "+
				"asked for in term %d, and %s leads in term %d", name, unasked, wanted, before.Status.Term,
				now.Status.Primary, now.Status.Term)
		}
		s.Logf("%s leads in term %d after a switchover in term %d: once more",
			now.Status.Primary, now.Status.Term, before.Status.Term)
	}
}

// A node is drained: the primary on it hands over, and the drain passes. A lone
// instance is protected until its owner says otherwise.
func TestDrain(t *testing.T) {
	s := begin(t)
	// Names of its own: a drain evicts the Pods of all namespaces that its selector fits.
	s.apply(bare("drained", 3) + "---\n" + bare("drained-lone", 1))
	before := s.ready("drained")
	first := before.Status.Primary
	s.ready("drained-lone")
	check := s.writing("drained")
	drain := func(pod, timeout string) error {
		_, err := s.Kubectl(s.ctx, "drain", s.node(pod), "--ignore-daemonsets", "--delete-emptydir-data",
			"--timeout="+timeout, "--pod-selector", naming.LabelSampleDB+"="+naming.ClusterOf(pod))
		return err
	}
	node := s.node(first)
	t.Cleanup(func() { s.run("uncordon", node) })
	must(t, drain(first, "3m"))
	s.electedAfter(before)
	s.run("uncordon", node)
	s.ready("drained")
	check(outside.HandsOver)

	lone := naming.Instance("drained-lone", 0)
	loneNode := s.node(lone)
	t.Cleanup(func() { s.run("uncordon", loneNode) })
	if err := drain(lone, "8s"); err == nil {
		t.Error("a lone instance was evicted without its owner's leave")
	}
	s.patch("drained-lone", `{"eviction":"Allow"}`)
	s.until(func(ctx context.Context) error {
		there, err := s.Exists(ctx, "pdb/"+naming.Budget("drained-lone"))
		if err == nil && there {
			err = fmt.Errorf("there still is a budget")
		}
		return err
	})
	must(t, drain(lone, "3m"))
	s.run("uncordon", loneNode)
	s.ready("drained-lone")
}
