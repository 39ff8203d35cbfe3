package sampledb

import (
	"context"

	"toban.dev/internal/operator/sampledb/archive"
	"toban.dev/internal/operator/sampledb/drills"
	"toban.dev/internal/operator/sampledb/fleet"
	"toban.dev/internal/operator/sampledb/front"
	"toban.dev/internal/operator/sampledb/restore"
	"toban.dev/internal/operator/sampledb/second"
	"toban.dev/internal/operator/sampledb/secrets"
	"toban.dev/internal/operator/sampledb/stop"
	"toban.dev/internal/operator/sampledb/storage"
	"toban.dev/internal/operator/sampledb/versions"
	"toban.dev/internal/operator/sampledb/world"
)

// scope is one reconcile of a SampleDB: what is known of it, and the topics that act on it. It lives as long as that.
type scope struct {
	*world.Act

	*fleetTopics
	*storageTopics
	*archiveTopics
	*restoreTopics
	*versionsTopics
	*secretsTopics
	*stopTopics
	*frontTopics
	*drillsTopics
	*secondTopics
	*deletionTopic

	annexes world.Annexes
}

// The topics, by the folder that each family of them has.
type (
	fleetTopics    = fleet.Topics
	storageTopics  = storage.Topics
	archiveTopics  = archive.Topics
	restoreTopics  = restore.Topics
	versionsTopics = versions.Topics
	secretsTopics  = secrets.Topics
	stopTopics     = stop.Topics
	frontTopics    = front.Topics
	drillsTopics   = drills.Topics
	secondTopics   = second.Topics
)

func newScope(w *world.World, h *world.Effects) *scope {
	s, a := &scope{}, &world.Act{World: w, Effects: h}
	*s = scope{
		Act:            a,
		fleetTopics:    fleet.New(a, s),
		storageTopics:  storage.New(a, s),
		archiveTopics:  archive.New(a),
		restoreTopics:  restore.New(a, s),
		versionsTopics: versions.New(a, s),
		secretsTopics:  secrets.New(a, s),
		stopTopics:     stop.New(a, s),
		frontTopics:    front.New(a),
		drillsTopics:   drills.New(a),
		secondTopics:   second.New(a),
		deletionTopic:  &deletionTopic{Act: a, all: s},
	}
	for _, add := range annexes {
		add(a, s, &s.annexes)
	}
	return s
}

// phase is one step of a reconcile. It returns a problem (world.Problem) where
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
