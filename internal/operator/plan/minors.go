package plan

import (
	"fmt"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/operator/desired"
)

// minors says when newer minor versions of PostgreSQL are taken over, where the change has a part in that, or one is
// announced; else "". before is nil for a SampleDB that is made.
func minors(before, after *v1.SampleDB, now time.Time) string {
	sentence := whenMinors(after, now)
	if before == nil || whenMinors(before, now) != sentence {
		return sentence
	}
	same := before.Spec.Image == after.Spec.Image && before.Spec.Version == after.Spec.Version
	if u := before.Status.Update; same && u != nil && u.Begins != nil && now.Before(u.Begins.Time) {
		return fmt.Sprintf("PostgreSQL %s takes the place of %s at %s: %s", u.To, u.From,
			u.Begins.UTC().Format(time.RFC3339), restarts(after))
	}
	return ""
}

// whenMinors is that by what the spec says, "" where it can't be read.
func whenMinors(db *v1.SampleDB, now time.Time) string {
	if desired.Digest(db.Spec.Image) != "" {
		return "Newer minor versions of PostgreSQL are never taken over: spec.image is a digest"
	}
	p, err := desired.MinorPermission(db, now)
	switch {
	case err != nil:
		return ""
	case !p.Automatic || p.Window == nil:
		return "Newer minor versions of PostgreSQL are taken over on request alone (toban.dev/update=now)"
	}
	next := p.Window.Next(now).UTC().Format(time.RFC3339)
	if p.Quiet {
		next = p.Window.Next(now.Add(upgrade.Notice)).UTC().Format(time.RFC3339)
		return fmt.Sprintf("Newer minor versions of PostgreSQL are taken over by themselves, in a quiet hour of each "+
			"week (next from %s on) and announced half a day before: %s. update: {none: true} prevents that", next,
			restarts(db))
	}
	return fmt.Sprintf("Newer minor versions of PostgreSQL are taken over by themselves when update.window opens "+
		"(next %s): %s", next, restarts(db))
}

// restarts is what becomes of clients meanwhile.
func restarts(db *v1.SampleDB) string {
	if isAlone(db) {
		return "the one instance restarts, and nobody can read or write until it is back"
	}
	return "standbys restart first, and then the primary hands over"
}
