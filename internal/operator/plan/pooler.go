package plan

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
)

// pooler is what becomes of the poolers' Pods. What else changes of a pooler its Pods take while they run.
func (c change) pooler() *Step {
	was, is := c.before.Spec.Pooler, c.after.Spec.Pooler
	switch {
	case is == nil && was == nil:
		return nil
	case was == nil:
		return withoutStop(AddPooler,
			"the Service NAME-pool comes, and NAME-app gets its connection strings; no server restarts")
	case is == nil:
		return withoutStop(RemovePooler, "the Service NAME-pool goes, and the sessions of its clients end")
	case was.ReadOnly == nil && is.ReadOnly != nil:
		return withoutStop(AddPooler,
			"the Service NAME-pool-ro comes, and NAME-app gets its connection strings; no server restarts")
	case was.ReadOnly != nil && is.ReadOnly == nil:
		return withoutStop(RemovePooler, "the Service NAME-pool-ro goes, and the sessions of its clients end")
	}
	pods := func(db *v1.SampleDB) corev1.PodTemplateSpec { // those of all pools are alike
		return desired.Pools(db)[0].Deployment(db, desired.Settings{}, 1).Spec.Template
	}
	if reflect.DeepEqual(pods(c.before), pods(c.after)) {
		return nil
	}
	return withoutStop(ReplacePooler,
		"the Pods of the pooler are replaced one after the other: transactions under way end first, and the "+
			"sessions of idle clients end")
}

// withoutStop is a step while which writes go on.
func withoutStop(effect Effect, message string) *Step {
	return &Step{Effect: effect, Writes: WritesGoOn, Message: message}
}
