package world

// The reasons of decisions about the data of a SampleDB that is being deleted.
const (
	// spec.DeletionPolicy says what becomes of it.
	DeletionByPolicy = "ByPolicy"
	// all that belongs to the SampleDB stays, and runs on.
	DeletionOrphaned = "Orphaned"
	// its kind goes, and takes all objects with it; that is no wish about any of them.
	DeletionUninstalled = "Uninstalled"
	// the operator may not see whether its kind goes, and so never knows what is meant.
	DeletionUnreadable = "Unreadable"
	// why it is deleted is not known now.
	DeletionUnknown = "Unknown"
)

// DeletionPolicy is what becomes of the data, and why.
type DeletionPolicy struct{ Reason, Message string }

// Spares says that the data stays although nobody has said so.
func (f DeletionPolicy) Spares() bool {
	return f.Reason == DeletionUninstalled || f.Reason == DeletionUnreadable
}
