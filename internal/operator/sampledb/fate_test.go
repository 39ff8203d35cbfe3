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
		"its kind goes":                         {deletion{uninstalled: "sampledbs.toban.dev"}, fateUninstalled},
		"whether its kind goes is not known":    {deletion{err: errors.New("no answer")}, fateUnknown},
		"whether its kind goes may not be read": {deletion{unreadable: "x"}, fateUnreadable},
		"one kind goes, and another may not be read": {
			deletion{uninstalled: "x", unreadable: "y"}, fateUninstalled,
		},
		"one kind may not be read, and of another it is not known": {
			deletion{unreadable: "x", err: errors.New("no answer")}, fateUnknown,
		},
		"it is to be left, and whether its kind goes may not be read": {
			deletion{orphans: true, unreadable: "x"}, fateOrphaned,
		},
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
