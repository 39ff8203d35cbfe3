package archive

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// Scrub is how far the archive was read again: what the last verification that did has left, or what is on record,
// which may be newer than all that is left of DatabaseBackups. It is nil where it is not read again.
func (s *archiveTopic) Scrub() *v1.ScrubStatus {
	if s.Backup == nil || s.Backup.Verification.Scrub == nil || s.Backup.Verification.Scrub.None {
		return nil
	}
	var on *v1.ScrubStatus
	if s.DB.Status.Backup != nil && !s.ArchiveLeft() {
		on = s.DB.Status.Backup.Scrub
	}
	last := s.lastScrub()
	if last == nil || on != nil && on.At != nil && (last.Scrub.At == nil || last.Scrub.At.Before(on.At)) {
		return on
	}
	return last.Scrub
}

// lastScrub is the last verification of a backup in the archive that has read it again, nil for none.
func (s *archiveTopic) lastScrub() (last *v1.VerificationStatus) {
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if v := b.Status.Verification; v != nil && v.Scrub != nil && s.InArchive(b) &&
			(last == nil || last.CompletedAt.Before(v.CompletedAt)) {
			last = v
		}
	}
	return last
}

// Intact is the condition Intact of what was read again, empty before anything was.
func Intact(scrub *v1.ScrubStatus) world.Verdict {
	switch {
	case scrub == nil || scrub.At == nil:
		return world.Verdict{}
	case len(scrub.Broken) > 0:
		return world.No(v1.ReasonObjectsBroken, brokenWords(scrub))
	case scrub.WholeSince == nil:
		return world.Yes(v1.ReasonIntact, "all objects that were read again so far are as they were written")
	}
	return world.Yes(v1.ReasonIntact, "all objects are as they were written: all have been read again since "+
		scrub.WholeSince.UTC().Format(time.RFC3339))
}

// brokenWords name the broken objects, and say what follows.
func brokenWords(scrub *v1.ScrubStatus) string {
	var names []string
	newest := false
	for _, o := range scrub.Broken {
		names = append(names, fmt.Sprintf("%s (%s)", o.Name, o.Problem))
		newest = newest || o.Newest
	}
	words := "not as they were written: " + strings.Join(names, "; ")
	if scrub.More > 0 {
		words += fmt.Sprintf("; and %d more", scrub.More)
	}
	words += ". Backups that need them can't be restored: put them back from a copy, if there is one"
	if newest {
		words += ". The newest backup or its WAL is affected: a full one is taken"
	}
	return words
}

// newestBroken is when it was found that the newest backup can't be restored to the end of the archive, zero where it
// can, or where a backup since is complete.
func (s *archiveTopic) newestBroken() time.Time {
	scrub := s.Scrub()
	if scrub == nil || scrub.At == nil {
		return time.Time{}
	}
	newest := false
	for _, o := range scrub.Broken {
		newest = newest || o.Newest
	}
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; s.InArchive(b) && !dueAt(b).Before(scrub.At.Time) {
			newest = false
		}
	}
	if !newest {
		return time.Time{}
	}
	return scrub.At.Time
}

// BrokenChanges is the event that tells of broken objects: again where others are.
func BrokenChanges(old, now v1.SampleDBStatus) []world.Event {
	was, is := world.Condition(old, v1.ConditionIntact), world.Condition(now, v1.ConditionIntact)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Message == is.Message {
		return nil
	}
	return []world.Event{world.Warning(world.EventArchiveBroken, is.Message)}
}
