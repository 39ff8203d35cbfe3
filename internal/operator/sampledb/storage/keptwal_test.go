package storage

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// keeping is a SampleDB x with the primary x-0, of whose 100 GiB so many hundredths are used, with a limit of 25 GiB
// for slots.
func keeping(was string, used int64, slots ...protocol.Slot) *Topics {
	s := roomScope(was, volumeOf(used, 0), volumeOf(10, 0))
	answer := s.Seen.Answers["x-0"]
	answer.Role, answer.Ready, answer.Leader, answer.Term = protocol.RolePrimary, true, "x-0", 1
	answer.KeptWAL = &protocol.KeptWAL{Limit: 25 * testGiB, Slots: slots}
	s.Seen.Answers["x-0"] = answer
	return s
}

// limited is the same with another limit, in GiB.
func (s *Topics) limited(gib int64) *Topics {
	limit := gib * testGiB
	if gib < 0 {
		limit = -1
	}
	s.Seen.Answers["x-0"].KeptWAL.Limit = limit
	return s
}

// archiveIs says of its archive what keeps it back, "" for nothing.
func (s *Topics) archiveIs(reason string) *Topics {
	s.Backup = &v1.BackupSpec{MaxLag: &metav1.Duration{}}
	answer := s.Seen.Answers["x-0"]
	answer.Archive = &protocol.ArchiveStatus{Reason: reason, Error: "it is away", LSN: "0/5000000"}
	s.Seen.Answers["x-0"] = answer
	return s
}

// keeper is a slot that keeps so many GiB.
func keeper(name string, gib int64, active bool) protocol.Slot {
	return protocol.Slot{Name: name, Bytes: gib * testGiB, Active: active}
}

func TestWhatKeepsWALIsSaid(t *testing.T) {
	const kept = v1.ReasonWALKept
	mine, away := keeper("mine", 14, false), keeper("toban_x_1", 20, false)
	for name, c := range map[string]struct {
		scope  *Topics
		reason string
		says   []string
	}{
		"nothing":                       {keeping("", 40), v1.ReasonRoomEnough, []string{"40 % used"}},
		"less than an eighth":           {keeping("", 40, keeper("mine", 12, false)), v1.ReasonRoomEnough, nil},
		"it was more, and is less":      {keeping(kept, 40, keeper("mine", 7, false)), kept, []string{"keeps 6.2Gi"}},
		"it was more, and is much less": {keeping(kept, 40, keeper("mine", 6, false)), v1.ReasonRoomEnough, nil},
		"a slot that nobody reads": {keeping("", 40, mine), kept, []string{
			"x-0 keeps 12.5Gi of WAL for the replication slot mine, which nobody reads",
			`kubectl exec x-0 -- psql -U postgres -c "SELECT pg_drop_replication_slot('mine')"`,
			"Beyond 25.0Gi (max_slot_wal_keep_size) the slot is lost",
		}},
		"a slot that is read slowly": {keeping("", 40, keeper("mine", 14, true)), kept, []string{
			"the replication slot mine, which its application reads more slowly", "the slot is lost"}},
		"a standby is away": {keeping("", 40, away), kept, []string{
			"for x-1, which does not receive it: its line in the status says why",
			"Beyond 25.0Gi (max_slot_wal_keep_size) x-1 copies all data anew"}},
		"a standby is slow": {keeping("", 40, keeper("toban_x_1", 20, true)), kept, []string{
			"for x-1, which receives it more slowly", "x-1 copies all data anew"}},
		"the archive is away": {keeping("", 40, keeper(naming.SlotArchive, 14, true)).archiveIs(
			protocol.ArchiveFailing), kept, []string{
			"that the archive does not have yet: the condition Archiving says why (ArchiveFailing)",
			"Beyond 25.0Gi (max_slot_wal_keep_size) the archive has a gap, and a new base backup is taken"}},
		"the archive is slow": {keeping("", 40, keeper(naming.SlotArchive, 14, true)).archiveIs(""), kept, []string{
			"its store takes WAL more slowly", "the archive has a gap"}},
		"several": {keeping("", 40, away, mine, keeper("little", 12, false)), kept, []string{
			"x-0 keeps 18.8Gi of WAL for x-1", "anew. x-0 keeps 12.5Gi of WAL for the replication slot mine"}},
		"half of a small limit": {keeping("", 40, keeper("mine", 2, false)).limited(4), kept, []string{
			"keeps 2.0Gi of WAL", "Beyond 4.0Gi"}},
		"less than that": {keeping("", 40, keeper("mine", 1, false)).limited(4), v1.ReasonRoomEnough, nil},
		"slots may keep nothing": {keeping("", 40, keeper("mine", 1, false)).limited(0), kept, []string{
			"Beyond 0 (max_slot_wal_keep_size)"}},
		"nothing limits it": {keeping("", 40, mine).limited(-1), kept, []string{
			"Nothing limits that (max_slot_wal_keep_size is -1) but the volume"}},
		"a volume is nearly full too": {keeping("", 92, mine), v1.ReasonNearlyFull, []string{
			"92 % used", "delete what is not needed. x-0 keeps 12.5Gi of WAL for the replication slot mine"}},
		"a volume is full too": {keeping("", 100, mine), v1.ReasonVolumeFull, []string{
			"has no room for WAL", "for the replication slot mine"}},
	} {
		v := c.scope.judge()
		if v.Reason != c.reason {
			t.Errorf("%s: it is %s (%s), want %s", name, v.Reason, v.Message, c.reason)
		}
		for _, words := range c.says {
			if !strings.Contains(v.Message, words) {
				t.Errorf("%s: it says %q, without %q", name, v.Message, words)
			}
		}
		if strings.Contains(v.Message, "little") || strings.Contains(v.Message, "..") {
			t.Errorf("%s: it says %q", name, v.Message)
		}
	}
}

// What was told stays while the primary, or an agent of an earlier release, does not say anything of it.
func TestWhatKeepsWALStaysWhereItIsNotKnown(t *testing.T) {
	for name, forget := range map[string]func(*protocol.Status){
		"no primary":                func(s *protocol.Status) { s.Ready = false },
		"it has not looked":         func(s *protocol.Status) { s.KeptWAL = nil },
		"it does not know its room": func(s *protocol.Status) { s.Room = nil },
	} {
		s := keeping("", 40, keeper("mine", 14, false))
		told := s.judge()
		meta.SetStatusCondition(&s.DB.Status.Conditions, metav1.Condition{
			Type: v1.ConditionHasRoom, Status: told.Status, Reason: told.Reason, Message: told.Message,
		})
		answer := s.Seen.Answers["x-0"]
		forget(&answer)
		s.Seen.Answers["x-0"] = answer
		if now := s.judge(); now != told {
			t.Errorf("%s: it says %+v, before %+v", name, now, told)
		}
		s.DB.Status.Conditions[0].Reason = v1.ReasonNearlyFull
		if now := s.judge(); now.Reason != v1.ReasonRoomEnough {
			t.Errorf("%s: it says %+v of what was not told", name, now)
		}
	}
}

// The message is not written again for each segment of WAL.
func TestWhatKeepsWALIsSaidInSteps(t *testing.T) {
	said := map[string]bool{}
	for bytes := 13 * testGiB; bytes <= 25*testGiB; bytes += 16 << 20 {
		said[keeping("", 40, protocol.Slot{Name: "mine", Bytes: bytes}).judge().Message] = true
	}
	if len(said) > 3 {
		t.Errorf("it says %d things", len(said))
	}
}
