package api

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/agent/kube"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
)

// witnessing is the Lease of a SampleDB with a text on record, and an agent's access to it.
func witnessing(w *world, record string) (*kube.Cluster, *coordinationv1.Lease) {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: naming.Lease("x"),
		Annotations: map[string]string{naming.AnnotationElection: record}}}
	w.must(w.api.Create(w.Context(), lease))
	return w.ofAgent(), lease
}

// ofAgent is the access that the agent of the first instance has.
func (w *world) ofAgent() *kube.Cluster {
	w.Helper()
	cluster, err := kube.New(w.server, w.namespace, "x-0", "x")
	w.must(err)
	return cluster
}

// Agents of several releases write the one Lease, each the whole of it.
func TestTheWitnessKeepsWhatANewerReleaseHasPutOnRecord(t *testing.T) {
	const before = `{"ballot":{"term":4,"leader":"x-0"},"pledge":7,
		"record":{"term":4,"version":1,"now":{"voters":["x-0.a","x-1.b"],"acknowledgements":2}}}`
	for name, operation := range map[string]func(uid ha.Voter) ha.WitnessOperation{
		"who gets its vote": func(uid ha.Voter) ha.WitnessOperation {
			return ha.WitnessOperation{Vote: &ha.VoteRequest{Term: 9, Candidate: "x-1.b", Voter: uid}}
		},
		"who tells it the record": func(uid ha.Voter) ha.WitnessOperation {
			return ha.WitnessOperation{Leader: "x-0", Voter: uid, Configuration: &ha.Configuration{Term: 9, Version: 1}}
		},
		"who holds on": func(ha.Voter) ha.WitnessOperation { return ha.WitnessOperation{ReadLease: 9} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k, lease := witnessing(w, before)
			_, _, err := k.Operate(t.Context(), operation(ha.Voter(lease.UID)))
			w.must(err)
			w.read("x", lease)
			got := lease.Annotations[naming.AnnotationElection]
			if !strings.Contains(got, `"pledge":7`) || !strings.Contains(got, `9`) {
				t.Errorf("on record is %s", got)
			}
		})
	}
}

func TestARecordOfANewerFormatIsRefusedAndLeftAsItIs(t *testing.T) {
	const newer = `{"format":1,"ballot":"4 x-0"}`
	w := newWorld(t)
	k, lease := witnessing(w, newer)
	_, _, err := k.Operate(t.Context(),
		ha.WitnessOperation{Vote: &ha.VoteRequest{Term: 9, Candidate: "x-1.b", Voter: ha.Voter(lease.UID)}})
	if err == nil || !strings.Contains(err.Error(), "the format 1") ||
		!strings.Contains(err.Error(), "run that release") {
		t.Errorf("the error is %v", err)
	}
	w.read("x", lease)
	if got := lease.Annotations[naming.AnnotationElection]; got != newer {
		t.Errorf("on record is %s", got)
	}
}
