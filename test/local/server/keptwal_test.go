package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
)

// writeSegments makes so many segments of WAL.
func (n *node) writeSegments(segments int) {
	n.Helper()
	for range segments {
		n.do("select pg_logical_emit_message(false, 'test', 'one')")
		n.do("select pg_switch_wal()")
	}
}

// keptWAL is for whom a primary keeps so many segments of WAL at least, and the names of the slots.
func (n *node) keptWAL(segments int64) (kept postgres.KeptWAL, names []string) {
	n.Helper()
	s := n.session()
	defer s.Close()
	kept, err := s.KeptWAL(n.Context(), segments<<24)
	must(n, err)
	for _, slot := range kept.Slots {
		names = append(names, slot.Name)
	}
	return kept, names
}

// Slots are told of by how much they keep: those of standbys, physical and logical ones of applications, also of
// another database. Not one that keeps nothing yet, nor one that is lost. What a message says to do drops any of them.
func TestWhichSlotsKeepWAL(t *testing.T) {
	n, standbys := pair(t, 1)
	n.settings.Parameters["max_slot_wal_keep_size"] = "160MB"
	n.settings.Parameters["wal_keep_size"] = "0"
	must(t, n.Configure(n.settings))
	must(t, n.process.Reload())
	n.eventually("the limit is in force", func() bool { kept, _ := n.keptWAL(1); return kept.Limit == 160<<20 })
	n.do("create database other")
	n.do("select pg_create_physical_replication_slot('later')")
	n.do("select pg_create_physical_replication_slot('mine', true)")
	n.writeSegments(3)
	other, err := pgx.Connect(t.Context(),
		fmt.Sprintf("host=%s port=%d user=postgres dbname=other sslmode=disable", n.Server.Run, n.Port))
	must(t, err)
	_, err = other.Exec(t.Context(), "select pg_create_logical_replication_slot('its', 'pgoutput')")
	must(t, err)
	must(t, other.Close(context.Background()))
	n.writeSegments(3)

	// The standby has all, after a moment.
	n.eventually("only these two keep much", func() bool {
		_, names := n.keptWAL(2)
		return slices.Equal(names, []string{"mine", "its"})
	})
	kept, _ := n.keptWAL(2)
	for _, slot := range kept.Slots {
		if least := map[string]int64{"mine": 6, "its": 3}[slot.Name] - 1; slot.Bytes < least<<24 ||
			slot.Bytes > (least+2)<<24 || slot.Active {
			t.Errorf("it says %+v", slot)
		}
	}
	if _, names := n.keptWAL(5); !slices.Equal(names, []string{"mine"}) {
		t.Errorf("%q keep five segments", names)
	}
	kept, names := n.keptWAL(0)
	if i := slices.Index(names, standbys[0].slot); i < 0 || !kept.Slots[i].Active || slices.Contains(names, "later") {
		t.Errorf("it says %+v of all", kept)
	}
	standbys[0].stop(postgres.StopFast)
	n.writeSegments(2)
	kept, names = n.keptWAL(2)
	if i := slices.Index(names, standbys[0].slot); i < 0 || kept.Slots[i].Active {
		t.Errorf("it says %+v with a standby that is away", kept)
	}

	n.do("select pg_drop_replication_slot('its')")
	n.writeSegments(8)
	n.do("checkpoint")
	if status := n.ask("select wal_status from pg_replication_slots where slot_name = 'mine'"); status != "lost" {
		t.Errorf("beyond the limit the slot is %s", status)
	}
	kept, names = n.keptWAL(2)
	if slices.Contains(names, "mine") || slices.Contains(names, "its") {
		t.Errorf("it says %+v of what is lost and dropped", kept)
	}
	n.settings.Parameters["max_slot_wal_keep_size"] = "-1"
	must(t, n.Configure(n.settings))
	must(t, n.process.Reload())
	n.eventually("nothing limits it", func() bool { kept, _ := n.keptWAL(1); return kept.Limit < 0 })
}
