package restore

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// mayElect says that the instances with data may elect one of them, or that this is not known: one of them lacks no
// votes, or those that answer have enough by the newest configuration of the quorum. The witness is taken to vote.
func (s *lossTopic) mayElect() bool {
	if s.Refusal() == "" {
		return true
	}
	var newest ha.Configuration
	votes := map[ha.Voter]bool{}
	for ordinal := range s.Instances() {
		a := s.Seen.Answers[naming.Instance(s.DB.Name, ordinal)]
		if a.Data != protocol.DataPresent {
			continue
		}
		if a.Refusal != ha.RefusedNoMajority && a.Refusal != ha.RefusedNotAVoter {
			return true
		}
		votes[a.Election.Voter] = true
		if a.Election.Configuration.Newer(newest) {
			newest = a.Election.Configuration
		}
	}
	return newest.Elects(votes, true)
}

// survivorOf is the instance that goes on with the data that it has, the one with the most. Where that is not to be
// yet, or not at all, it is "" and the condition Restored says why.
func survivorOf(l world.Loss, v lossView) (instance string, position ha.Position, why world.Verdict) {
	refused := func(words string) world.Verdict {
		return world.No(v1.ReasonRestoreFailed, "no instance is promoted with a loss: "+words)
	}
	waits := func(words string) world.Verdict { return world.No(v1.ReasonRestoring, "waits: "+words) }
	if l.Reason != world.LossMajority {
		switch l.Reason {
		case world.LossNone:
			return "", position, refused(v.primary + " takes writes. Remove spec.restore")
		case world.LossUnknown:
			return "", position, waits("nothing is known of " + names(v.in(world.VolumeUnknown)) +
				", which may have what " +
				"the others lack. If its volume is lost for good, delete its claim and its Pod")
		case world.LossHasData:
			return "", position, waits("the instances with data may still elect one of them, as the condition " +
				"Available says. If a volume is lost for good, delete its claim and its Pod")
		}
		return "", position, refused("none has data. " + l.Message)
	}
	for _, i := range v.in(world.VolumeHasData) {
		if i.position.LSN == 0 {
			return "", position, waits("it is not known how far the WAL of " + i.instance + " goes")
		}
		if i.instance == l.Onto {
			position = i.position
		}
	}
	return l.Onto, position, world.Verdict{}
}

// promoteSurvivor notes which instance goes on with the data that it has. The instances stop, and start with that, as
// with the data of a restore in place.
func (s *lossTopic) promoteSurvivor() {
	instance, position, why := survivorOf(s.Loss, s.LossView())
	if instance == "" {
		s.Restored = why
		return
	}
	at, archive := metav1.NewTime(s.Now).Rfc3339Copy(), s.Archives()
	s.Restore.Cause, s.Restore.Instance, s.Restore.LSN = v1.CauseSurvivor, instance, position.LSN.String()
	s.Restore.ArchiveEnd, s.Restore.ArchiveEndAt = archive.ArchivedLSN, archive.Latest
	s.Restore.StartedAt, s.Restore.PreparedAt = &at, &at
	s.Restored = world.No(v1.ReasonRestoring, instance+" is to go on with the data that it has")
}

// survived is the condition Restored of a SampleDB that went on with the data of one instance.
func survived(r *v1.RestoreStatus) world.Verdict {
	words := fmt.Sprintf("%s went on with the data that it had, up to %s: what was acknowledged and only others had "+
		"is lost", r.Instance, r.LSN)
	if archived, err := wal.ParseLSN(r.ArchiveEnd); err == nil && r.ArchiveEndAt != nil {
		if own, err := wal.ParseLSN(r.LSN); err == nil && own < archived {
			words += fmt.Sprintf(". The archive has more, up to %s of %s, on the branch that was left", r.ArchiveEnd,
				r.ArchiveEndAt.UTC().Format(time.RFC3339))
		}
	}
	return world.Yes(v1.ReasonRestored, words)
}

// MajorityLost says what can be done where too few instances have their data, "" elsewhere.
func (s *lossTopic) MajorityLost() string {
	if s.Loss.Reason != world.LossMajority {
		return ""
	}
	_, position, _ := survivorOf(s.Loss, s.LossView())
	words := fmt.Sprintf("; %s: no instance is promoted. If those volumes are lost for good, go on with what %s has, "+
		"up to %s, and lose what only the others had: kubectl toban promote %s --accept-loss",
		s.Loss.Message, s.Loss.Onto, position.LSN, s.DB.Name)
	if s.Backup == nil {
		return words
	}
	archive := s.Archives()
	more := ""
	if archived, err := wal.ParseLSN(archive.ArchivedLSN); err == nil && position.LSN < archived {
		more = ", which is more"
	}
	return words + fmt.Sprintf("; or begin again with what the archive has%s: %s; %s, and the data of %s stays on its "+
		"volume", more, world.BringBack(s.DB.Name), s.reach(archive), s.Loss.Onto)
}
