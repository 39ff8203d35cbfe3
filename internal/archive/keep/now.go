package keep

import (
	"fmt"
	"time"

	"toban.dev/internal/archive/book"
)

// ahead is by how much the clock of who applies the rules may be ahead of the newest object: an archive that works gets
// WAL every hour, also while nobody writes, and a backup that was killed in a full store must still be given up.
const ahead = 24 * time.Hour

// Bounded is a policy whose now is at most a day after the newest object of the archive that is written now, by the
// clock of its store: a Pod whose clock is far ahead would take what is new for too old. It says so where days count.
func (p Policy) Bounded(c book.Catalogue) (bounded Policy, held string) {
	newest := c.Newest()
	latest := newest.Add(ahead)
	if newest.IsZero() || !p.Now.After(latest) {
		return p, ""
	}
	if p.Age > 0 {
		held = fmt.Sprintf("it is %s by the clock of the Pod that applies retention, and the newest object of the "+
			"archive is of %s by that of its store: days are counted back from %s. Set the clocks right",
			p.Now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339), latest.UTC().Format(time.RFC3339))
	}
	p.Now = latest
	return p, held
}
