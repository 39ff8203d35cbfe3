package archive

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// KeysHeld is true when the Secret had all keys that the archive needs when the last backup looked. It has no reason
// where nothing is encrypted, or nobody has looked yet.
func (s *archiveTopic) KeysHeld(now *v1.BackupStatus) world.Verdict {
	if s.Backup == nil || s.Backup.Encryption == nil || now == nil || len(now.Keys) == 0 {
		return world.Verdict{}
	}
	e := s.Backup.Encryption
	var missing, needed, idle []string
	known, unnoted := false, false
	for _, k := range now.Keys {
		uses := isNeeded(k)
		switch {
		case k.Recipient == "":
			unnoted = true
		case !k.Held && (uses || k.Recipient == e.Recipient):
			missing = append(missing, keyWords(k))
		case k.Recipient == e.Recipient:
		case uses:
			needed = append(needed, keyWords(k))
		default:
			idle = append(idle, k.Recipient)
		}
		known = known || k.Recipient == e.Recipient
	}
	switch {
	case !known:
		return world.No(v1.ReasonKeyNotTried, fmt.Sprintf("the next backup sees whether the Secret %s has the private "+
			"half of %s", e.Key.Name, e.Recipient))
	case len(missing) > 0:
		return world.No(v1.ReasonKeyMissing,
			fmt.Sprintf("at the last backup the Secret %s did not have the private half "+
				"of %s: put it back into its age.key, else that can't be restored",
				e.Key.Name, strings.Join(missing, "; of ")))
	}
	return world.Yes(v1.ReasonKeysHeld, heldWords(e.Key.Name, needed, idle, unnoted))
}

// isNeeded says that something in the archive needs a key.
func isNeeded(k v1.ArchiveKey) bool { return k.Backups > 0 || k.WAL > 0 }

// keyWords are a key, and what needs it.
func keyWords(k v1.ArchiveKey) string {
	switch {
	case k.Backups > 0 && k.WAL > 0:
		return fmt.Sprintf("%s, which %d backups and %d objects of WAL need", k.Recipient, k.Backups, k.WAL)
	case k.Backups > 0:
		return fmt.Sprintf("%s, which %d backups need", k.Recipient, k.Backups)
	case k.WAL > 0:
		return fmt.Sprintf("%s, which %d objects of WAL need", k.Recipient, k.WAL)
	}
	return k.Recipient + ", which all needs that is written from now on"
}

// heldWords say which former keys must stay, and which need not.
func heldWords(secret string, needed, idle []string, unnoted bool) string {
	words := fmt.Sprintf("the Secret %s has every key that the archive needs", secret)
	if len(needed) > 0 {
		words += ". Keep the former key " + strings.Join(needed, "; and ")
	}
	switch {
	case unnoted && len(needed)+len(idle) > 0:
		words += ". Keep every former key: a former version of Toban has not noted which one some of the archive needs"
	case len(idle) > 0:
		words += ". Nothing in the archive needs " + strings.Join(idle, ", ") + ": it may be taken out of the Secret"
	}
	return words
}

// keyChanged is when the last backup that is complete has ended, if it was encrypted for another key than the spec
// names now; else zero. From then on a new one is due, so that soon nothing needs the former key.
func (s *archiveTopic) keyChanged() time.Time {
	last := s.LastBackup()
	if last == nil {
		return time.Time{}
	}
	recipient := func(e *v1.EncryptionSpec) string {
		if e == nil {
			return ""
		}
		return e.Recipient
	}
	if recipient(last.Status.Archive.Encryption) == recipient(s.Backup.Encryption) {
		return time.Time{}
	}
	return last.Status.CompletedAt.Time
}

// KeyChanges is the event that tells of a key that is missing: again where another one is.
func KeyChanges(old, now v1.SampleDBStatus) []world.Event {
	was, is := world.Condition(old, v1.ConditionKeysHeld), world.Condition(now, v1.ConditionKeysHeld)
	if is == nil || is.Reason != v1.ReasonKeyMissing || was != nil && was.Message == is.Message &&
		was.Status == metav1.ConditionFalse {
		return nil
	}
	return []world.Event{world.Warning(world.EventKeyMissing, is.Message)}
}
