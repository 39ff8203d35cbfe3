package world

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/change/window"
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
// now on takes no writes from clients.
func (s *fleetFacts) AllClosed() bool {
	for ordinal := range s.Present() {
		answer, known := s.Seen.Answers[naming.Instance(s.DB.Name, ordinal)]
		if !known || !s.Config.Closed || answer.ConfigRevision != s.Config.Revision {
			return false
		}
	}
	return s.Seen.Answers[s.Primary()].Closed
}

// Pulling says that nodes pull the image of an update.
func (s *upgradeFacts) Pulling() bool { return s.Update != nil && s.Update.Step == v1.UpdatePulling }

// Permission is when the spec and a request let an update begin, or what else is asked for like one. An error is of the
// window, and for the user.
func (s *upgradeFacts) Permission(r Request) (upgrade.Permission, error) {
	p := upgrade.Permission{Asked: s.Asks(r), InWindow: s.Asked(r) == naming.UpdateInWindow}
	spec := s.DB.Spec.Update
	if spec == nil || spec.Window == nil {
		return p, nil
	}
	of := *spec.Window
	of.TimeZone = cmp.Or(of.TimeZone, spec.TimeZone)
	at, err := ParseWindow(of)
	if err != nil {
		return p, fmt.Errorf("spec.update.window.%w", err)
	}
	p.Window, p.Automatic = &at, spec.Mode != v1.UpdateOnRequest
	return p, nil
}

// MinorPermission is when an update to a newer minor version may begin: without a window in the quiet hour of the
// SampleDB, by itself, where the spec does not prevent that.
func (s *upgradeFacts) MinorPermission() (upgrade.Permission, error) {
	p, err := s.Permission(RequestUpdate)
	spec := cmp.Or(s.DB.Spec.Update, &v1.UpdateSpec{})
	p.Automatic = spec.Mode != v1.UpdateOnRequest && !spec.None
	if err != nil || p.Window != nil {
		return p, err
	}
	var stops []window.Window
	for _, w := range s.DB.Spec.StopWindows {
		if stop, err := ParseWindow(w); err == nil { // one that can't be read stops nothing, and is told elsewhere
			stops = append(stops, stop)
		}
	}
	quiet, found, err := window.Quiet(s.DB.Namespace+"/"+s.DB.Name, spec.TimeZone, stops, s.Now)
	if err != nil {
		return p, fmt.Errorf("spec.update.%w", err)
	}
	if p.Quiet = found; found {
		p.Window = &quiet
	}
	return p, nil
}

// ParseWindow reads a window. Its errors begin with the field.
func ParseWindow(w v1.Window) (window.Window, error) {
	var days []string
	for _, day := range w.Days {
		days = append(days, string(day))
	}
	return window.Parse(days, w.Start, w.Duration.Duration, w.TimeZone)
}
