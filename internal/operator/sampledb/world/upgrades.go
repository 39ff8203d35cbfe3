package world

import (
	"context"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// Job is the SampleDB's own Job of a name, nil where there is none.
func (s *upgradeFacts) Job(name string) *batchv1.Job {
	i := slices.IndexFunc(s.Seen.Jobs, func(j batchv1.Job) bool {
		return j.Name == name && metav1.IsControlledBy(&j, s.DB)
	})
	if i < 0 {
		return nil
	}
	return &s.Seen.Jobs[i]
}

// Pods asks Pods how far they are, and tells those of upgrades to begin; package agents has the real one.
type Pods interface {
	pods.Asker
	// Begin tells the Pod at an address to begin. Its certificate is for an identity, by the authority in the config.
	Begin(
		ctx context.Context, identity, host string, config protocol.Config, begin protocol.UpgradeBegin,
	) error
}

// Upgrading says that an upgrade to another major version is wanted or under way.
func (s *upgradeFacts) Upgrading() bool {
	return desired.Upgrades(s.DB) || s.Upgrade != nil && s.Upgrade.Step == v1.UpgradeStarting
}

// RestsOnGreen says that the second side serves, and nothing is to be done until somebody accepts that, or goes back.
func (s *upgradeFacts) RestsOnGreen() bool {
	u := s.Upgrade
	return u != nil && u.Sides != nil && u.Sides.Step == v1.SidesChanged && u.WayBack == v1.WayBackBack
}

// UpgradingInstance is the one on whose volume the data is being upgraded, "" for none.
func (s *upgradeFacts) UpgradingInstance() string {
	if s.Upgrade.Closed() {
		return s.Upgrade.Instance
	}
	return ""
}

// AllClosed says that every instance lets no client in, and that none is there any more: whoever becomes primary from
// now on takes no writes from clients. Readers have gone by it too.
func (s *fleetFacts) AllClosed() bool {
	for ordinal := range s.Present() {
		answer, known := s.Seen.Answers[naming.Instance(s.DB.Name, ordinal)]
		if !known || !s.Config.Closed || answer.ConfigRevision != s.Config.Revision {
			return false
		}
	}
	return s.Seen.Answers[s.Primary()].Closed && len(s.OpenReaders()) == 0
}

// OpenReaders are the readers whose servers go by a former config, which may let clients in. One that runs no server,
// does not answer, or is on its way out is not waited for: nobody writes there.
func (s *fleetFacts) OpenReaders() (names []string) {
	for _, ordinal := range slices.Sorted(maps.Keys(s.Seen.Readers.Pods)) {
		name := naming.Reader(s.DB.Name, ordinal)
		answer, known := s.Seen.Readers.Answers[name]
		serves := known && answer.Role != protocol.RoleNone && s.Seen.Readers.Pods[ordinal].DeletionTimestamp == nil
		if serves && answer.ConfigRevision != s.Config.Revision {
			names = append(names, name)
		}
	}
	return names
}

// Pulling says that nodes pull the image of an update.
func (s *upgradeFacts) Pulling() bool { return s.Update != nil && s.Update.Step == v1.UpdatePulling }

// Permission is when the spec and a request let an update begin, or what else is asked for like one. An error is of the
// window, and for the user.
func (s *upgradeFacts) Permission(r Request) (upgrade.Permission, error) {
	p, err := desired.Permission(s.DB)
	p.Asked, p.InWindow = s.Asks(r), s.Asked(r) == naming.UpdateInWindow
	return p, err
}

// MinorPermission is when the spec and a request let an update to a newer minor version begin.
func (s *upgradeFacts) MinorPermission() (upgrade.Permission, error) {
	p, err := desired.MinorPermission(s.DB, s.Now)
	p.Asked, p.InWindow = s.Asks(RequestUpdate), s.Asked(RequestUpdate) == naming.UpdateInWindow
	return p, err
}
