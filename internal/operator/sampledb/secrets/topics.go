// Package secrets is about the Secrets of a SampleDB: those for its instances and its applications, its certificates,
// and other passwords and authorities.
package secrets

import (
	"context"

	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the secrets of a SampleDB.
type Topics struct {
	*world.Act
	*secretsTopic
	*passwordTopic
	*authorityTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{Act: a}
	b := base{Act: a, All: all, Others: others}
	all.secretsTopic = &secretsTopic{base: b}
	all.passwordTopic = &passwordTopic{base: b}
	all.authorityTopic = &authorityTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, Others]

// Others is what these topics ask other topics for.
type Others interface {
	// CreatePoolSecret makes the Secret of the poolers.
	CreatePoolSecret(context.Context) (there bool, err error)
}
