package bluegreen

import "fmt"

// StrategyFacts are the facts about a SampleDB that may keep it from a blue/green upgrade, before anything of it is
// looked into (docs/bluegreen.md, "What is refused").
type StrategyFacts struct {
	// From is the major version of the data.
	From int
	// NoArchive, Pooler and OwnCertificate say that the spec has backup.none, pooler, and tls.secretName.
	NoArchive, Pooler, OwnCertificate bool
}

// The reasons for which the strategy is refused, besides SourceTooOld.
const (
	WithoutArchive     = "WithoutArchive"
	WithPooler         = "WithPooler"
	WithOwnCertificate = "WithOwnCertificate"
)

// What each sentence ends with.
const (
	inPlace   = ". Set spec.upgrade.strategy to InPlace"
	orInPlace = ", or set spec.upgrade.strategy to InPlace"
	meanwhile = " until the upgrade has ended" + orInPlace
)

// StrategyRefusal says why a SampleDB can't be upgraded by a second side, and what to do: the first reason that there
// is, "" for none.
func StrategyRefusal(f StrategyFacts) (reason, sentence string) {
	for _, r := range []struct {
		is               bool
		reason, sentence string
	}{
		{f.From < OldestToFollowBack, SourceTooOld, fmt.Sprintf("PostgreSQL %d can't follow a second side back",
			f.From) + inPlace},
		{f.NoArchive, WithoutArchive, "A second side is restored from the archive, and there is none. Remove " +
			"spec.backup.none" + orInPlace},
		{f.Pooler, WithPooler, "A pooler does not know a second side yet. Remove spec.pooler" + meanwhile},
		{f.OwnCertificate, WithOwnCertificate, "A second side does not show a certificate of yours yet. Remove " +
			"spec.tls.secretName" + meanwhile},
	} {
		if r.is {
			return r.reason, r.sentence
		}
	}
	return "", ""
}
