package sampledb

import (
	"errors"
	"testing"
)

func TestADeletionMeansTheDataOnlyWhenItIsAWishAboutTheSampleDB(t *testing.T) {
	for name, c := range map[string]struct {
		deletion deletion
		reason   string
	}{
		"the SampleDB alone is deleted":    {deletion{}, fateByPolicy},
		"what belongs to it is to be left": {deletion{orphans: true}, fateOrphaned},
		"what belongs to it has been left": {deletion{ownerless: true}, fateOrphaned},
		"it is to be left, whatever becomes of the kind": {
			deletion{orphans: true, err: errors.New("no answer")}, fateOrphaned,
		},
		"its kind goes":                      {deletion{uninstalled: "sampledbs.toban.dev"}, fateUninstalled},
		"whether its kind goes is not known": {deletion{err: errors.New("no answer")}, fateUnknown},
		"one kind goes, and of another it is not known": {
			deletion{uninstalled: "x", err: errors.New("no answer")}, fateUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if f := decideFate(c.deletion); f.reason != c.reason || (f.message == "") != (c.reason == fateByPolicy) {
				t.Errorf("decided %+v, want %s", f, c.reason)
			}
		})
	}
}
