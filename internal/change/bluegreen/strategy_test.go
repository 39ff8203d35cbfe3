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
		"a pooler":      {func(f *StrategyFacts) { f.Pooler = true }, WithPooler, "Remove spec.pooler"},
		"a certificate": {func(f *StrategyFacts) { f.OwnCertificate = true }, WithOwnCertificate, "tls.secretName"},
	} {
		f := StrategyFacts{From: OldestToFollowBack}
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
