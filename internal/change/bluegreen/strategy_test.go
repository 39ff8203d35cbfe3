package bluegreen

import (
	"strings"
	"testing"
)

func TestStrategyRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		edit       func(*StrategyFacts)
		want, says string
	}{
		"nothing":       {func(*StrategyFacts) {}, "", ""},
		"PostgreSQL 15": {func(f *StrategyFacts) { f.From = 15 }, SourceTooOld, "PostgreSQL 15"},
		"no archive":    {func(f *StrategyFacts) { f.NoArchive = true }, WithoutArchive, "spec.backup.none"},
		"a long name":   {func(f *StrategyFacts) { f.Name = "orders1" }, NameTooLong, "7 characters, and with more"},
		"of another":    {func(f *StrategyFacts) { f.PostgreSQL = "all" }, OfPostgreSQL, "the PostgreSQL all"},
		"a pooler":      {func(f *StrategyFacts) { f.Pooler = true }, WithPooler, "Remove spec.pooler"},
		"readers":       {func(f *StrategyFacts) { f.Readers = true }, WithReaders, "Remove spec.readers"},
		"a relay":       {func(f *StrategyFacts) { f.Relay = true }, WithRelay, "spec.service.route to Primary"},
		"a certificate": {func(f *StrategyFacts) { f.OwnCertificate = true }, WithOwnCertificate, "tls.secretName"},
	} {
		f := StrategyFacts{Name: "orders", LongestName: 6, From: OldestToFollowBack}
		test.edit(&f)
		reason, sentence := StrategyRefusal(f)
		if reason != test.want || !strings.Contains(sentence, test.says) {
			t.Errorf("%s: it is refused by %q: %s", name, reason, sentence)
		}
		if reason != "" && !strings.Contains(sentence, "spec.upgrade.strategy to InPlace") {
			t.Errorf("%s: the other way is not told: %s", name, sentence)
		}
	}
}
