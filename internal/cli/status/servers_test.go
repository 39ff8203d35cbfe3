package status

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"
)

// How two servers have answered, a primary and a standby of it.
const (
	answerOfPrimary = `{"at" : "2026-11-27T08:00:00+00:00", "role" : "primary",
 "startedAt" : "2026-11-27T05:00:00+00:00", "lsn" : "0/5000060", "connections" : 12, "maxConnections" : 100,
 "oldestTransactionSeconds" : 61.2, "wraparoundPercent" : 4.26, "lastCheckpoint" : "2026-11-27T07:58:00+00:00",
 "standbys" : [{"name":"x-1","state":"streaming","bytes":3145728,"seconds":0.0021},
  {"name":"x-2","state":"catchup","bytes":2147483648,"seconds":null}],
 "slots" : [{"name":"toban_archive","type":"physical","active":false,"wal":"extended","bytes":1073741824}]}`
	answerOfStandby = `{"at" : "2026-11-27T08:00:00+00:00", "role" : "standby",
 "startedAt" : "2026-11-27T07:59:55+00:00", "lsn" : "0/5000000", "connections" : 0, "maxConnections" : 100,
 "oldestTransactionSeconds" : 0, "wraparoundPercent" : 4.26, "lastCheckpoint" : "2026-11-27T07:58:00+00:00",
 "standbys" : [], "slots" : []}`
)

func TestServersAreShown(t *testing.T) {
	servers := []shownServer{{Instance: "x-0"}, {Instance: "x-1"}, {Instance: "x-2"}, {Instance: "x-3"},
		{Instance: "x-4", Unknown: "ask x-4: no route\nto host"}}
	for i, answer := range []string{answerOfPrimary, answerOfStandby, answerOfStandby, answerOfStandby} {
		var err error
		if servers[i].serverAnswer, err = readServer([]byte(answer)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	writeServers(w, servers)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"x-0 3h 12 of 100 1m1.2s 2m ago 4.3 % -", "x-1 5s 0 of 100 - 2m ago 4.3 % 3Mi, 2.1ms",
		"x-2 5s 0 of 100 - 2m ago 4.3 % 2.0Gi (catchup)", "4.3 % nobody sends it WAL",
		"x-4 unknown: ask x-4: no route to host", "toban_archive x-0 physical false 1.0Gi extended",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("it does not show %q:\n%s", want, out.String())
		}
	}
	if _, err := readServer([]byte("psql: error")); err == nil {
		t.Error("it understands what is no answer")
	}
}
