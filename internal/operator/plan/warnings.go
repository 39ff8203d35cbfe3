package plan

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
)

// warnings are what a change gives up, before is nil for a SampleDB that is made.
func warnings(before, after *v1.SampleDB) (out []string) {
	for _, w := range []struct {
		is   func(*v1.SampleDB) bool
		text string
	}{
		{isAsync, "durability: async: a commit is on the primary's disk only when the client is told; if that is " +
			"lost, the last commits are lost"},
		{isAlone, "one instance: when its node is lost, nobody can read or write until it is back; when its volume " +
			"is lost, so is what the archive does not have yet"},
		{hasNoArchive, "backup.none: what is lost with the volumes, or by mistake, is lost for good"},
		{deletesData, "deletionPolicy: Delete: who deletes the SampleDB deletes its data"},
		{deletesVolumes, "storage.whenScaled: Delete: an instance that is removed loses its volume"},
		{takesSecondSide, "upgrade.strategy: BlueGreen: it is on trial (docs/bluegreen.md)"},
	} {
		if w.is(after) && (before == nil || !w.is(before)) {
			out = append(out, w.text)
		}
	}
	if sentence := refused(after); sentence != "" && (before == nil || refused(before) != sentence) {
		out = append(out, "upgrade.strategy: BlueGreen: "+sentence)
	}
	if before != nil && (change{before: before, after: after}).restore() != nil {
		out = append(out, "restore: what was committed after the target is not in the database any more; it stays in "+
			"the archive until retention removes it")
	}
	return out
}

// refused says why the SampleDB can't be upgraded by a second side although its spec has that strategy, "" where it
// can.
func refused(db *v1.SampleDB) (sentence string) {
	if desired.BlueGreen(db) {
		_, sentence = bluegreen.StrategyRefusal(sides.StrategyFacts(db))
	}
	return sentence
}

func takesSecondSide(db *v1.SampleDB) bool { return desired.BlueGreen(db) && refused(db) == "" }

func isAsync(db *v1.SampleDB) bool { return db.Spec.Durability == v1.DurabilityAsync }

func isAlone(db *v1.SampleDB) bool { return desired.Instances(db) == 1 }

func hasNoArchive(db *v1.SampleDB) bool { return desired.Backup(db) == nil }

func deletesData(db *v1.SampleDB) bool { return db.Spec.DeletionPolicy == v1.DeletionDelete }

func deletesVolumes(db *v1.SampleDB) bool { return db.Spec.Storage.WhenScaled == v1.ScaleDelete }
