package sampledb

import (
	"errors"
	"testing"
)

func TestADeletionMeansTheDataOnlyWhenItIsAWishAboutTheSampleDB(t *testing.T) {
	for name, c := range map[string]struct {
		deletion deletionView
		reason   string
	}{
		"the SampleDB alone is deleted":    {deletionView{}, deletionByPolicy},
		"what belongs to it is to be left": {deletionView{orphans: true}, deletionOrphaned},
		"what belongs to it has been left": {deletionView{ownerless: true}, deletionOrphaned},
		"it is to be left, whatever becomes of the kind": {
			deletionView{orphans: true, err: errors.New("no answer")}, deletionOrphaned,
		},
		"its kind goes": {deletionView{uninstalled: "sampledbs.toban.dev"},
			deletionUninstalled},
		"whether its kind goes is not known":    {deletionView{err: errors.New("no answer")}, deletionUnknown},
		"whether its kind goes may not be read": {deletionView{unreadable: "x"}, deletionUnreadable},
		"one kind goes, and another may not be read": {
			deletionView{uninstalled: "x", unreadable: "y"}, deletionUninstalled,
		},
		"one kind may not be read, and of another it is not known": {
			deletionView{unreadable: "x", err: errors.New("no answer")}, deletionUnknown,
		},
		"it is to be left, and whether its kind goes may not be read": {
			deletionView{orphans: true, unreadable: "x"}, deletionOrphaned,
		},
		"one kind goes, and of another it is not known": {
			deletionView{uninstalled: "x", err: errors.New("no answer")}, deletionUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := decideDeletionPolicy(c.deletion)
			if p.reason != c.reason || (p.message == "") != (c.reason == deletionByPolicy) {
				t.Errorf("decided %+v, want %s", p, c.reason)
			}
		})
	}
}
