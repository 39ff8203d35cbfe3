package bluegreen

import "fmt"

// StrategyFacts are the facts about a SampleDB that may keep it from a blue/green upgrade, before anything of it is
// looked into (docs/bluegreen.md, "What is refused").
type StrategyFacts struct {
	// Name is the SampleDB's, LongestName the length of one that has room for that of the second side.
	Name        string
	LongestName int
	// From is the major version of the data.
	From int
	// NoArchive, Pooler, Readers, Relay and OwnCertificate say that the spec has backup.none, pooler, readers, the
	// route Relay, and tls.secretName.
	NoArchive, Pooler, Readers, Relay, OwnCertificate bool
	// PostgreSQL is the PostgreSQL object that the SampleDB is the server of, "" for none.
	PostgreSQL string
}

// The reasons for which the strategy is refused, besides SourceTooOld.
const (
	WithoutArchive     = "WithoutArchive"
	NameTooLong        = "NameTooLong"
	OfPostgreSQL       = "OfPostgreSQL"
	WithPooler         = "WithPooler"
	WithReaders        = "WithReaders"
	WithRelay          = "WithRelay"
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
		{len(f.Name) > f.LongestName, NameTooLong, fmt.Sprintf("The name has %d characters, and with more than %d "+
			"there is no room for that of a second side", len(f.Name), f.LongestName) + inPlace},
		{f.PostgreSQL != "", OfPostgreSQL, fmt.Sprintf("It is the server of the PostgreSQL %s, which does not know "+
			"a second side yet", f.PostgreSQL) + inPlace},
		{f.Pooler, WithPooler, "A pooler does not know a second side yet. Remove spec.pooler" + meanwhile},
		{f.Readers, WithReaders, "Readers do not know a second side yet. Remove spec.readers" + meanwhile},
		{f.Relay, WithRelay, "Instances do not pass clients on to a second side yet. Set spec.service.route to " +
			"Primary" + meanwhile},
		{f.OwnCertificate, WithOwnCertificate, "A second side does not show a certificate of yours yet. Remove " +
			"spec.tls.secretName" + meanwhile},
	} {
		if r.is {
			return r.reason, r.sentence
		}
	}
	return "", ""
}
