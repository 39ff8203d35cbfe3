package console

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Picture is who leads, who follows, and through what clients come.
type Picture struct {
	// Term is that of the primary's election.
	Term int64 `json:"term,omitempty"`
	// Nodes are the instances, and behind them the readers.
	Nodes   []Node `json:"nodes"`
	Poolers []Pool `json:"poolers"`
}

// Node is an instance or a reader.
type Node struct {
	Name string `json:"name"`
	// Role is primary, standby, or "" where it has none now.
	Role string `json:"role"`
	// Reader says that it has no vote, ever; Voter that its vote counts now.
	Reader  bool   `json:"reader,omitempty"`
	Voter   bool   `json:"voter,omitempty"`
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Machine string `json:"machine,omitempty"`
	Version string `json:"version,omitempty"`
	// Pod is how its Pod is: Running, Pending, …, Ending while it is deleted, Absent, or "" where nobody knows.
	Pod    string           `json:"pod,omitempty"`
	Volume *v1.VolumeStatus `json:"volume,omitempty"`
}

// Pool are the Pods of a pooler.
type Pool struct {
	Name     string `json:"name"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Ready    int32  `json:"ready"`
	Wanted   int32  `json:"wanted"`
}

// pictureOf draws a database from its status and, where these are known, the labels of its Pods, which are newer.
func pictureOf(db *v1.SampleDB, seen Seen) Picture {
	pods := map[string]*corev1.Pod{}
	for i := range seen.Pods {
		pods[seen.Pods[i].Name] = &seen.Pods[i]
	}
	out := Picture{Term: db.Status.Term, Nodes: []Node{}, Poolers: poolersOf(db)}
	for _, i := range db.Status.InstanceStatuses {
		n := Node{Name: i.Name, Role: i.Role, Voter: i.Voter, Ready: i.Ready, Reason: i.Reason, Message: i.Message,
			Zone: i.Zone, Version: i.Version, Volume: i.Volume}
		out.Nodes = append(out.Nodes, n.withPod(pods[i.Name], seen.KnowsPods))
	}
	if r := db.Status.Readers; r != nil {
		for _, one := range r.Instances {
			n := Node{Name: one.Name, Role: string(protocol.RoleStandby), Reader: true, Ready: one.Ready,
				Reason: one.Reason, Message: one.Message}
			out.Nodes = append(out.Nodes, n.withPod(pods[one.Name], seen.KnowsPods))
		}
	}
	return out
}

// withPod is a node with what its Pod says.
func (n Node) withPod(pod *corev1.Pod, known bool) Node {
	switch {
	case !known:
		return n
	case pod == nil:
		n.Pod, n.Role, n.Ready = "Absent", "", false
		return n
	}
	n.Machine = pod.Spec.NodeName
	n.Pod = cmp.Or(string(pod.Status.Phase), string(corev1.PodPending))
	if pod.DeletionTimestamp != nil {
		n.Pod = "Ending"
	}
	role := pod.Labels[naming.LabelRole]
	if n.Role = role; role == "" {
		n.Ready = false
	}
	return n
}

// poolersOf are the poolers that the spec wants.
func poolersOf(db *v1.SampleDB) []Pool {
	out := []Pool{}
	p := db.Spec.Pooler
	if p == nil {
		return out
	}
	status := v1.PoolerStatus{}
	if db.Status.Pooler != nil {
		status = *db.Status.Pooler
	}
	out = append(out, Pool{Name: naming.Pool(db.Name), Ready: status.Ready, Wanted: p.Instances})
	if p.ReadOnly != nil {
		out = append(out, Pool{Name: naming.ReadPool(db.Name), ReadOnly: true, Ready: status.ReadOnlyReady,
			Wanted: p.ReadOnly.Instances})
	}
	return out
}

// Lag is how far a standby is behind the primary, as the primary says.
type Lag struct {
	Name string `json:"name"`
	// State is that of pg_stat_replication, such as streaming; Sync is async, quorum, …
	State string `json:"state"`
	Sync  string `json:"sync"`
	// Bytes of WAL are not replayed there yet; Seconds is how long that has lasted, nil while there is nothing to
	// replay.
	Bytes   int64    `json:"bytes"`
	Seconds *float64 `json:"seconds"`
}

// Replication is what the primary says of its standbys.
type Replication struct {
	At       metav1.Time `json:"at"`
	LSN      string      `json:"lsn"`
	Standbys []Lag       `json:"standbys"`
}
