package storage

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// A slot that keeps more than keptPart of the primary's volume, or of what a slot may keep, is told of. It is no more
// told when it keeps less than half of that, nor where it keeps less than leastKept bytes.
const (
	keptPartOfVolume, keptPartOfLimit = 8, 2
	leastKept                         = 2 * leastWAL
)

// keptWAL is a sentence for each slot for which the primary keeps much WAL: for whom, what to do, and what happens at
// the limit; "" where there is none. Where it is not known, what was told stays.
func (s *spaceTopic) keptWAL(was *metav1.Condition) string {
	told := was != nil && was.Reason == v1.ReasonWALKept
	answer := s.Seen.Answers[s.Primary()]
	on := s.RoomOf(desired.VolumesOf(s.DB)[len(desired.VolumesOf(s.DB))-1], s.Primary())
	if answer.KeptWAL == nil || on == nil {
		if told {
			return was.Message
		}
		return ""
	}
	most := on.Size / keptPartOfVolume
	if limit := answer.KeptWAL.Limit; limit >= 0 {
		most = min(most, limit/keptPartOfLimit)
	}
	most = max(most, leastKept)
	step := most / 2
	if told {
		most = step
	}
	var sentences []string
	for _, slot := range answer.KeptWAL.Slots {
		if slot.Bytes < most {
			break // the others keep less
		}
		// What grows all the time is told in steps.
		sentences = append(sentences, fmt.Sprintf("%s keeps %s of WAL %s. %s", s.Primary(),
			space.Amount(slot.Bytes/step*step), s.whose(slot), s.beyond(slot, answer.KeptWAL.Limit)))
	}
	return strings.Join(sentences, ". ")
}

// whose says for whom a slot keeps WAL, why, and what to do.
func (s *spaceTopic) whose(slot protocol.Slot) string {
	member := s.memberOf(slot)
	switch {
	case slot.Name == naming.SlotArchive:
		if v := s.Archiving(); v.Status != metav1.ConditionTrue {
			return fmt.Sprintf("that the archive does not have yet: the condition Archiving says why (%s)", v.Reason)
		}
		return "that the archive does not have yet, because its store takes WAL more slowly than it is written"
	case member != "" && slot.Active:
		return fmt.Sprintf("for %s, which receives it more slowly than it is written: look at its volume and network",
			member)
	case member != "":
		return fmt.Sprintf("for %s, which does not receive it: its line in the status says why", member)
	case slot.Active:
		return fmt.Sprintf("for the replication slot %s, which its application reads more slowly than it is written",
			slot.Name)
	}
	return fmt.Sprintf("for the replication slot %s, which nobody reads: let its application read it, or drop it with "+
		`kubectl exec %s -- psql -U postgres -c "SELECT pg_drop_replication_slot('%[1]s')"`, slot.Name, s.Primary())
}

// beyond says what happens when a slot keeps as much as it may.
func (s *spaceTopic) beyond(slot protocol.Slot, limit int64) string {
	if limit < 0 {
		return "Nothing limits that (max_slot_wal_keep_size is -1) but the volume"
	}
	what := "the slot is lost"
	if slot.Name == naming.SlotArchive {
		what = "the archive has a gap, and a new base backup is taken"
	} else if member := s.memberOf(slot); member != "" {
		what = member + " copies all data anew"
	}
	return fmt.Sprintf("Beyond %s (max_slot_wal_keep_size) %s", space.Amount(limit), what)
}

// memberOf is the instance or the reader that a slot is for, "" for none.
func (s *spaceTopic) memberOf(slot protocol.Slot) string {
	for _, m := range s.Config.Members {
		if naming.Slot(m.Name) == slot.Name {
			return m.Name
		}
	}
	for i := range s.Config.Readers {
		if reader := naming.Reader(s.DB.Name, i); naming.Slot(reader) == slot.Name {
			return reader
		}
	}
	return ""
}
