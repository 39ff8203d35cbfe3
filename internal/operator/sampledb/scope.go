package sampledb

import (
	"context"
)

// scope is one reconcile of a SampleDB: what is known of it, and the topics that act on it. It lives as long as that.
type scope struct {
	*act

	*fleetTopic
	*exchangeTopic
	*machinesTopic
	*handoverTopic
	*readersTopic
	*storageTopic
	*spaceTopic
	*volumesTopic
	*archiveTopic
	*backupsTopic
	*secondTopic
	*restoreTopic
	*lossTopic
	*imageTopic
	*maintenanceTopic
	*upgradeTopic
	*bluegreenTopic
	*greenTopic
	*rehearsalTopic
	*secretsTopic
	*passwordTopic
	*authorityTopic
	*stopTopic
	*frontTopic
	*drillsTopic
	*deletionTopic
}

func newScope(w *world, h *effects) *scope {
	s, a := &scope{}, &act{w, h}
	b := base{a, s}
	*s = scope{
		act:              a,
		fleetTopic:       &fleetTopic{base: b},
		exchangeTopic:    &exchangeTopic{base: b},
		machinesTopic:    &machinesTopic{base: b},
		handoverTopic:    &handoverTopic{base: b},
		readersTopic:     &readersTopic{base: b},
		storageTopic:     &storageTopic{base: b},
		spaceTopic:       &spaceTopic{base: b},
		volumesTopic:     &volumesTopic{base: b},
		archiveTopic:     &archiveTopic{base: b},
		backupsTopic:     &backupsTopic{base: b},
		secondTopic:      &secondTopic{base: b},
		restoreTopic:     &restoreTopic{base: b},
		lossTopic:        &lossTopic{base: b},
		imageTopic:       &imageTopic{base: b},
		maintenanceTopic: &maintenanceTopic{base: b},
		upgradeTopic:     &upgradeTopic{base: b},
		bluegreenTopic:   &bluegreenTopic{base: b},
		greenTopic:       &greenTopic{base: b},
		rehearsalTopic:   &rehearsalTopic{base: b},
		secretsTopic:     &secretsTopic{base: b},
		passwordTopic:    &passwordTopic{base: b},
		authorityTopic:   &authorityTopic{base: b},
		stopTopic:        &stopTopic{base: b},
		frontTopic:       &frontTopic{base: b},
		drillsTopic:      &drillsTopic{base: b},
		deletionTopic:    &deletionTopic{base: b},
	}
	return s
}

// base is what each topic has: what is known, what it acts with, and the other topics, to ask them for something.
type base struct {
	*act
	all *scope
}

// phase is one step of a reconcile. It returns a problem (see there) where
// the user has to act, and any other error where trying again may help.
type phase struct {
	name string
	run  func(context.Context) error
	kind kind
}

// kind says what a phase that fails keeps from being done.
type kind int

const (
	// gates: the data, or what Pods mount, is as the phase leaves it. Nothing that touches those is done after its
	// failure.
	gates kind = iota
	// apart: nothing rests on the phase. It is done also after the failure of others while a primary takes writes and
	// no restore is under way, so that a database that serves keeps its Services and its backups.
	apart
	// work: as apart, and it may begin something that a stop would have to wait for. It is not done while one is under
	// way.
	work
)
