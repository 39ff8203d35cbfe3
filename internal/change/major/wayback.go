package major

import "fmt"

// The methods of an upgrade in place as a spec names them.
const (
	methodClone = "Clone"
	methodLink  = "Link"
	methodCopy  = "Copy"
)

// WayBack is what is known before an upgrade in place of what leads back after it.
type WayBack struct {
	// To is the new version.
	To int
	// Method is that of the spec, "" where the volume decides.
	Method string
	// Archive says that there is an archive, Backup that a backup is in it which was taken right before, or will be.
	Archive, Backup bool
}

// Sentence says which way back there will be when there is none by itself any more.
func (w WayBack) Sentence() string {
	const lacking = "without what is written from then on"
	once := fmt.Sprintf("once PostgreSQL %d has started, ", w.To)
	former := "the former data, which stays whole on the volume until the upgrade is accepted"
	restore := "a restore from the archive into another SampleDB"
	whole := w.Method == methodClone || w.Method == methodCopy
	switch {
	case whole && w.Backup:
		return once + "the way back is " + former + ", or " + restore + ", both " + lacking
	case whole:
		return once + "the way back is " + former + ", " + lacking
	case w.Backup:
		return once + "the way back is " + restore + ", " + lacking
	}
	why := "there is no archive (spec.backup)"
	if w.Archive {
		why = "no backup is taken before (spec.upgrade.backup is None), and whether an earlier one is there is not " +
			"looked at"
	}
	text := once + "there is no way back: " + why
	if w.Method == methodLink {
		return text + ", and with the method Link the former data is of no use then"
	}
	return text + ", and the former data is of use then only if the volume can clone (XFS, Btrfs)"
}
