package sampledb

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// mayElect says that the instances with data may elect one of them, or that this is not known: one of them lacks no
// votes, or those that answer have enough by the newest configuration of the quorum. The witness is taken to vote.
func (s *lossTopic) mayElect() bool {
	if s.refusal() == "" {
		return true
	}
	var newest ha.Configuration
	votes := map[ha.Voter]bool{}
	for ordinal := range s.instances() {
		a := s.seen.answers[naming.Instance(s.db.Name, ordinal)]
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
func survivorOf(l loss, v lossView) (instance string, position ha.Position, why verdict) {
	refused := func(words string) verdict {
		return no(v1.ReasonRestoreFailed, "no instance is promoted with a loss: "+words)
	}
	waits := func(words string) verdict { return no(v1.ReasonRestoring, "waits: "+words) }
	if l.reason != lossMajority {
		switch l.reason {
		case lossNone:
			return "", position, refused(v.primary + " takes writes. Remove spec.restore")
		case lossUnknown:
			return "", position, waits("nothing is known of " + names(v.in(volumeUnknown)) + ", which may have what " +
				"the others lack. If its volume is lost for good, delete its claim and its Pod")
		case lossHasData:
			return "", position, waits("the instances with data may still elect one of them, as the condition " +
				"Available says. If a volume is lost for good, delete its claim and its Pod")
		}
		return "", position, refused("none has data. " + l.message)
	}
	for _, i := range v.in(volumeHasData) {
		if i.position.LSN == 0 {
			return "", position, waits("it is not known how far the WAL of " + i.instance + " goes")
		}
		if i.instance == l.onto {
			position = i.position
		}
	}
	return l.onto, position, verdict{}
}

// promoteSurvivor notes which instance goes on with the data that it has. The instances stop, and start with that, as
// with the data of a restore in place.
func (s *lossTopic) promoteSurvivor() {
	instance, position, why := survivorOf(s.loss, s.lossView())
	if instance == "" {
		s.restored = why
		return
	}
	at, archive := metav1.NewTime(s.now).Rfc3339Copy(), s.archives()
	s.restore.Cause, s.restore.Instance, s.restore.LSN = v1.CauseSurvivor, instance, position.LSN.String()
	s.restore.ArchiveEnd, s.restore.ArchiveEndAt = archive.ArchivedLSN, archive.Latest
	s.restore.StartedAt, s.restore.PreparedAt = &at, &at
	s.restored = no(v1.ReasonRestoring, instance+" is to go on with the data that it has")
}

// survived is the condition Restored of a SampleDB that went on with the data of one instance.
func survived(r *v1.RestoreStatus) verdict {
	words := fmt.Sprintf("%s went on with the data that it had, up to %s: what was acknowledged and only others had "+
		"is lost", r.Instance, r.LSN)
	if archived, err := wal.ParseLSN(r.ArchiveEnd); err == nil && r.ArchiveEndAt != nil {
		if own, err := wal.ParseLSN(r.LSN); err == nil && own < archived {
			words += fmt.Sprintf(". The archive has more, up to %s of %s, on the branch that was left", r.ArchiveEnd,
				r.ArchiveEndAt.UTC().Format(time.RFC3339))
		}
	}
	return yes(v1.ReasonRestored, words)
}

// majorityLost says what can be done where too few instances have their data, "" elsewhere.
func (s *lossTopic) majorityLost() string {
	if s.loss.reason != lossMajority {
		return ""
	}
	_, position, _ := survivorOf(s.loss, s.lossView())
	words := fmt.Sprintf("; %s: no instance is promoted. If those volumes are lost for good, go on with what %s has, "+
		"up to %s, and lose what only the others had: kubectl toban promote %s --accept-loss",
		s.loss.message, s.loss.onto, position.LSN, s.db.Name)
	if s.backup == nil {
		return words
	}
	archive := s.archives()
	more := ""
	if archived, err := wal.ParseLSN(archive.ArchivedLSN); err == nil && position.LSN < archived {
		more = ", which is more"
	}
	return words + fmt.Sprintf("; or begin again with what the archive has%s: %s; %s, and the data of %s stays on its "+
		"volume", more, bringBack(s.db.Name), s.reach(archive), s.loss.onto)
}
