package sampledb

import (
	"context"
)

// scope is one reconcile of a SampleDB: what is known of it, and the topics that act on it. It lives as long as that.
type scope struct {
	*act

	*fleetTopics
	*storageTopics
	*archiveTopics
	*restoreTopics
	*versionsTopics
	*secretsTopics
	*stopTopics
	*frontTopics
	*drillsTopics
	*deletionTopic
}

// The topics, by the folder that each family of them has.
type (
	fleetTopics    = fleetAll
	storageTopics  = storageAll
	archiveTopics  = archiveAll
	restoreTopics  = restoreAll
	versionsTopics = versionsAll
	secretsTopics  = secretsAll
	stopTopics     = stopAll
	frontTopics    = frontAll
	drillsTopics   = drillsAll
)

func newScope(w *world, h *effects) *scope {
	s, a := &scope{}, &act{w, h}
	*s = scope{
		act:            a,
		fleetTopics:    newFleet(a, s),
		storageTopics:  newStorage(a, s),
		archiveTopics:  newArchive(a),
		restoreTopics:  newRestore(a, s),
		versionsTopics: newVersions(a, s),
		secretsTopics:  newSecrets(a, s),
		stopTopics:     newStop(a, s),
		frontTopics:    newFront(a),
		drillsTopics:   newDrills(a),
		deletionTopic:  &deletionTopic{act: a, all: s},
	}
	return s
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
