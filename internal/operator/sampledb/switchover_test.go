package sampledb

import (
	"testing"

	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// An annotation is no new generation, and the operator would look minutes later.
func TestARequestForASwitchoverIsSeenAtOnce(t *testing.T) {
	with := func(key, value string) *v1.SampleDB {
		db := &v1.SampleDB{}
		db.Annotations = map[string]string{key: value}
		return db
	}
	for name, c := range map[string]struct {
		old, now *v1.SampleDB
		want     bool
	}{
		"it is set":         {&v1.SampleDB{}, with(naming.AnnotationSwitchover, "any"), true},
		"it is another one": {with(naming.AnnotationSwitchover, "any"), with(naming.AnnotationSwitchover, "x-1"), true},
		"it is taken back":  {with(naming.AnnotationSwitchover, "any"), &v1.SampleDB{}, true},
		"it is the same": {
			with(naming.AnnotationSwitchover, "any"), with(naming.AnnotationSwitchover, "any"), false,
		},
		"it is not ours": {&v1.SampleDB{}, with("team", "shop"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requestChanged().Update(ctrlevent.UpdateEvent{
				ObjectOld: c.old, ObjectNew: c.now,
			}); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
