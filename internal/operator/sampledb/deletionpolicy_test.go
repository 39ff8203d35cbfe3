package sampledb

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

func TestADeletionMeansTheDataOnlyWhenItIsAWishAboutTheSampleDB(t *testing.T) {
	for name, c := range map[string]struct {
		deletion deletionView
		reason   string
	}{
		"the SampleDB alone is deleted":    {deletionView{}, world.DeletionByPolicy},
		"what belongs to it is to be left": {deletionView{orphans: true}, world.DeletionOrphaned},
		"what belongs to it has been left": {deletionView{ownerless: true}, world.DeletionOrphaned},
		"it is to be left, whatever becomes of the kind": {
			deletionView{orphans: true, err: errors.New("no answer")}, world.DeletionOrphaned,
		},
		"its kind goes": {deletionView{uninstalled: "sampledbs.toban.dev"},
			world.DeletionUninstalled},
		"whether its kind goes is not known":    {deletionView{err: errors.New("no answer")}, world.DeletionUnknown},
		"whether its kind goes may not be read": {deletionView{unreadable: "x"}, world.DeletionUnreadable},
		"that may not be read, and it is a second side that follows": {
			deletionView{unreadable: "x", follows: true}, world.DeletionByPolicy,
		},
		"a second side's kind goes": {deletionView{uninstalled: "x", follows: true}, world.DeletionUninstalled},
		"one kind goes, and another may not be read": {
			deletionView{uninstalled: "x", unreadable: "y"}, world.DeletionUninstalled,
		},
		"one kind may not be read, and of another it is not known": {
			deletionView{unreadable: "x", err: errors.New("no answer")}, world.DeletionUnknown,
		},
		"it is to be left, and whether its kind goes may not be read": {
			deletionView{orphans: true, unreadable: "x"}, world.DeletionOrphaned,
		},
		"one kind goes, and of another it is not known": {
			deletionView{uninstalled: "x", err: errors.New("no answer")}, world.DeletionUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := decideDeletionPolicy(c.deletion)
			if p.Reason != c.reason || (p.Message == "") != (c.reason == world.DeletionByPolicy) {
				t.Errorf("decided %+v, want %s", p, c.reason)
			}
		})
	}
}

// blueReader reads one SampleDB.
type blueReader struct {
	client.Reader
	blue *v1.SampleDB // nil where it is gone
}

func (r blueReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.blue == nil || key.Name != r.blue.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "sampledbs"}, key.Name)
	}
	r.blue.DeepCopyInto(into.(*v1.SampleDB)) //nolint:errcheck // it is one
	return nil
}

// A second side that follows has nothing that the other side has not: its data goes with it, also where the operator
// can't know whether the kind goes. One that serves, or is about to, has the last writes.
func TestASecondSideFollowsASampleDBThatLives(t *testing.T) {
	blue := func(modify ...func(*v1.SampleDB)) *v1.SampleDB {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "blue"}}
		db.Status.Upgrade = &v1.UpgradeStatus{Sides: &v1.SidesStatus{Step: v1.SidesFollowing, Serves: v1.SideBlue}}
		for _, m := range modify {
			m(db)
		}
		return db
	}
	for name, c := range map[string]struct {
		blue  *v1.SampleDB
		green string
		want  bool
	}{
		"it follows": {blue(), "x-green", true},
		"it serves": {blue(func(db *v1.SampleDB) { db.Status.Upgrade.Sides.Serves = v1.SideGreen }),
			"x-green", false},
		"sides change": {blue(func(db *v1.SampleDB) { db.Status.Upgrade.Sides.Step = v1.SidesChanging }),
			"x-green", false},
		"the other one goes": {blue(func(db *v1.SampleDB) { db.DeletionTimestamp = &metav1.Time{} }), "x-green",
			false},
		"the other one is gone":    {nil, "x-green", false},
		"another one of the name":  {blue(func(db *v1.SampleDB) { db.UID = "later" }), "x-green", false},
		"it is no second side":     {blue(), "y", false},
		"its upgrade was given up": {blue(func(db *v1.SampleDB) { db.Status.Upgrade = nil }), "x-green", true},
	} {
		yes := true
		green := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: c.green,
			OwnerReferences: []metav1.OwnerReference{{Kind: "SampleDB", Name: "x", UID: "blue", Controller: &yes}}}}
		s := newScope(world.New(&world.Core{DB: green}), &world.Effects{Reader: blueReader{blue: c.blue}})
		if got, err := s.follows(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
