package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	_ "embed"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/change/space"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
)

// serversDeadline is how long `toban status` waits for the servers, all together.
const serversDeadline = 5 * time.Second

// serversScript asks a server how it is; it answers with one value in JSON.
//
//go:embed servers.sql
var serversScript string

// shownServer is how the server of an instance is, by its own words.
type shownServer struct {
	Instance string `json:"instance"`
	// Unknown says why the server gave no answer; the rest is empty then.
	Unknown string `json:"unknown,omitempty"`
	*serverAnswer
}

// serverAnswer is what a server answers.
type serverAnswer struct {
	// At is the server's clock, Role primary or standby.
	At        time.Time `json:"at"`
	Role      string    `json:"role"`
	StartedAt time.Time `json:"startedAt"`
	// LSN is up to where it has written WAL, or a standby has replayed it.
	LSN string `json:"lsn"`
	// Connections are those of clients, MaxConnections how many there may be.
	Connections    int `json:"connections"`
	MaxConnections int `json:"maxConnections"`
	// OldestTransactionSeconds is how long the oldest transaction of a client is open, prepared ones too; 0 for none.
	OldestTransactionSeconds float64 `json:"oldestTransactionSeconds"`
	// WraparoundPercent is how much of the 2^31 transaction or multixact IDs the oldest database has used since it was
	// last frozen. Shortly before 100 the server takes no writes (PostgreSQL 18, "Preventing Transaction ID Wraparound
	// Failures").
	WraparoundPercent float64 `json:"wraparoundPercent"`
	// LastCheckpoint is the time of the last checkpoint from which a start would begin; on a standby it is one that
	// the primary made.
	LastCheckpoint time.Time `json:"lastCheckpoint"`
	// Standbys are those that receive WAL from it.
	Standbys []standbyLag `json:"standbys"`
	// Slots are for whom it keeps WAL.
	Slots []keptSlot `json:"slots"`
}

// standbyLag is how far a standby is behind, by the server that sends it WAL.
type standbyLag struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Bytes of WAL are written there and not replayed here.
	Bytes int64 `json:"bytes"`
	// Seconds is how long a commit took until it was replayed there; nil where nothing was written of late.
	Seconds *float64 `json:"seconds"`
}

// keptSlot is a replication slot.
type keptSlot struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Active bool   `json:"active"`
	// WAL is wal_status of pg_replication_slots: reserved, extended, unreserved or lost.
	WAL string `json:"wal"`
	// Bytes of WAL are kept for it.
	Bytes int64 `json:"bytes"`
}

// askServers asks the servers of all instances at once. What can't be asked is told in its line: that is no failure of
// the command, which shows what the operator saw in any case.
func askServers(ctx context.Context, c *cluster.Cluster, api client.Reader, db string) []shownServer {
	pods, err := c.InstancePods(ctx, api, db)
	if err != nil {
		return nil // there are none, and the status says why
	}
	ctx, cancel := context.WithTimeout(ctx, serversDeadline)
	defer cancel()
	servers := make([]shownServer, len(pods))
	var all sync.WaitGroup
	for i, pod := range pods {
		all.Go(func() { servers[i] = askServer(ctx, c, pod.Name) })
	}
	all.Wait()
	return servers
}

func askServer(ctx context.Context, c *cluster.Cluster, pod string) shownServer {
	server := shownServer{Instance: pod}
	answer, err := c.Ask(ctx, pod, cluster.Question{
		Application: "kubectl toban status", Database: cluster.DatabasePostgres, Script: serversScript,
	})
	if err == nil {
		server.serverAnswer, err = readServer(answer)
	}
	if err != nil {
		server.Unknown = err.Error()
	}
	return server
}

func readServer(answer []byte) (*serverAnswer, error) {
	var read serverAnswer
	if err := json.Unmarshal(answer, &read); err != nil {
		return nil, fmt.Errorf("understand the server's answer %.200q: %w", answer, err)
	}
	return &read, nil
}

// writeServers shows how the servers are, and for whom they keep WAL.
func writeServers(w io.Writer, servers []shownServer) {
	if len(servers) == 0 {
		return
	}
	fmt.Fprintln(w, "\nSERVER\tUP FOR\tCONNECTIONS\tOLDEST TRANSACTION\tLAST CHECKPOINT\tWRAPAROUND\tBEHIND")
	for _, s := range servers {
		if s.serverAnswer == nil {
			fmt.Fprintf(w, "%s\tunknown: %s\n", s.Instance, show.OneLineOf(s.Unknown, 160))
			continue
		}
		up, checkpoint := s.At.Sub(s.StartedAt), s.At.Sub(s.LastCheckpoint)
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s\t%s ago\t%.1f %%\t%s\n", s.Instance, duration.HumanDuration(up),
			s.Connections, s.MaxConnections, show.Span(s.OldestTransactionSeconds), duration.HumanDuration(checkpoint),
			s.WraparoundPercent, behind(s, servers))
	}
	writeSlots(w, servers)
}

// behind is how far a standby is behind, by the server that sends it WAL.
func behind(s shownServer, servers []shownServer) string {
	if s.Role == "primary" {
		return "-"
	}
	for _, sender := range servers {
		if sender.serverAnswer == nil {
			continue
		}
		for _, lag := range sender.Standbys {
			if lag.Name == s.Instance {
				return lag.words()
			}
		}
	}
	return "nobody sends it WAL"
}

func (l standbyLag) words() string {
	words := space.Amount(l.Bytes)
	if l.Seconds != nil {
		words += ", " + show.Span(*l.Seconds)
	}
	if l.State != "streaming" {
		words += " (" + l.State + ")"
	}
	return words
}

func writeSlots(w io.Writer, servers []shownServer) {
	head := "\nSLOT\tOF\tTYPE\tACTIVE\tKEEPS\tWAL"
	for _, s := range servers {
		if s.serverAnswer == nil {
			continue
		}
		for _, slot := range s.Slots {
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\t%s\n", slot.Name, s.Instance, slot.Type, slot.Active,
				space.Amount(slot.Bytes), cmp.Or(slot.WAL, "-"))
		}
	}
}
