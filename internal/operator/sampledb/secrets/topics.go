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
	all := &Topics{}
	b := base{a, all, others}
	*all = Topics{
		Act:            a,
		secretsTopic:   &secretsTopic{base: b},
		passwordTopic:  &passwordTopic{base: b},
		authorityTopic: &authorityTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type base struct {
	*world.Act
	all    *Topics
	others Others
}

// Others is what these topics ask other topics for.
type Others interface {
	// CreatePoolSecret makes the Secret of the poolers.
	CreatePoolSecret(context.Context) (there bool, err error)
}
