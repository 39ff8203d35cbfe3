package sampledb

import (
	"context"
)

// secretsAll are the topics about the secrets of a SampleDB.
type secretsAll struct {
	*act
	*secretsTopic
	*passwordTopic
	*authorityTopic
}

// newSecrets are the topics of one reconcile, with the others.
func newSecrets(a *act, others secretsOthers) *secretsAll {
	all := &secretsAll{}
	b := secretsBase{a, all, others}
	*all = secretsAll{
		act:            a,
		secretsTopic:   &secretsTopic{secretsBase: b},
		passwordTopic:  &passwordTopic{secretsBase: b},
		authorityTopic: &authorityTopic{secretsBase: b},
	}
	return all
}

// secretsBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type secretsBase struct {
	*act
	all    *secretsAll
	others secretsOthers
}

// secretsOthers is what these topics ask other topics for.
type secretsOthers interface {
	// createPoolSecret makes the Secret of the poolers.
	createPoolSecret(context.Context) (there bool, err error)
}
