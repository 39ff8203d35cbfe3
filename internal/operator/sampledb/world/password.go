package world

import (
	"fmt"
	"time"

	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
)

// Authorities are those that count.
func (s *secretFacts) Authorities() credentials.Authorities {
	a := s.Authority
	return credentials.Authorities{
		Oldest: a.Oldest, Issuer: a.Issuer, Epoch: a.Epoch, Overlap: time.Duration(a.OverlapSeconds) * time.Second,
	}
}

// TrustedEpochs names the authorities that are trusted, "" for the first one alone.
func (s *secretFacts) TrustedEpochs() string {
	switch a := s.Authority; {
	case a.Epoch == 0:
		return ""
	case a.Oldest == a.Epoch:
		return fmt.Sprint(a.Epoch)
	default:
		return fmt.Sprintf("%d-%d", a.Oldest, a.Epoch)
	}
}

// ChangesAuthority says that a rotation is asked for or under way, and does not only take its time.
func (s *secretFacts) ChangesAuthority() bool {
	underWay := s.Authority.Epoch > 0 && (s.Authority.Oldest < s.Authority.Epoch || s.Authority.Since == nil)
	return (s.Asks(RequestRotateAuthority) || underWay) && !s.AuthorityWaits
}

// WantedTrust identifies the authorities that NAME-app is to tell clients besides the SampleDB's own: "" for none.
func (s *secretFacts) WantedTrust() string {
	if s.Config.Given == "" {
		return ""
	}
	return desired.Hash(s.Config.Given)
}

// Rotation is what a decision about another password in NAME-app is made of (docs/trust.md, "The password").
type Rotation struct {
	// Asked says that a user asks for another one.
	Asked bool
	// Foreign says that there is no Secret NAME-app of the SampleDB: its passwords are the users' own.
	Foreign bool
	// Starting says that the init Job has not done its work, restoring that a restore in place is under way.
	Starting, Restoring bool
	// Sides says that a blue/green upgrade has two sides: the link carries no password.
	Sides bool
	// Primary takes writes, "" where none is known to; able says that its agent can be asked.
	Primary string
	Able    bool
	// Written says that the Secret has the password of the epoch, given that the server was told it.
	Written, Given bool
}

// RotationStep is the whole of what a reconcile does about a password.
type RotationStep string

// The steps of a rotation.
const (
	RotationNone  RotationStep = "none"
	RotationWait  RotationStep = "wait"  // nothing can be done now
	RotationBegin RotationStep = "begin" // another epoch
	RotationGive  RotationStep = "give"  // the server the password of the epoch
)

// Rotation is what the scope knows of it.
func (s *secretFacts) Rotation() Rotation {
	p, primary := s.Password, s.Primary()
	return Rotation{
		Asked:     s.Asks(RequestRotatePassword),
		Foreign:   !desired.Initialises(s.DB),
		Starting:  s.Starting(),
		Restoring: s.RestoreWanted(),
		Sides:     desired.TwoSides(s.DB),
		Primary:   primary,
		Able:      s.Seen.Answers[primary].Protocol >= 1,
		Written:   p.Secret == p.Epoch,
		// An earlier state of the data may have an earlier password.
		Given: p.Server == p.Epoch && (p.Epoch == 0 || p.Restored == s.Config.Restored),
	}
}

// Rotates says that a rotation is asked for or under way.
func (s *secretFacts) Rotates() bool {
	q := s.Rotation()
	return desired.Initialises(s.DB) && (q.Asked || !q.Written || !q.Given)
}

// AppWritten says that NAME-app is known to be as it should, but for the password.
func (s *secretFacts) AppWritten() bool {
	return s.appTrusts() && int(s.AppHosts) == s.WantedHosts()
}

// appTrusts says the same without the hosts of instances.
func (s *secretFacts) appTrusts() bool {
	return s.Authority.App == s.TrustedEpochs() && s.Trust == s.WantedTrust() &&
		s.Pooler.App == s.PoolerWanted() && s.Pooler.AppReadOnly == s.ReadPoolWanted()
}

// WantedHosts is of how many instances NAME-app names the hosts. One of an earlier release names none, and stays until
// it is made anew for another reason: applications may be restarted when it changes.
func (s *secretFacts) WantedHosts() int {
	if s.AppHosts == 0 && !s.Starting() && s.Password.Secret == s.Password.Epoch && s.appTrusts() {
		return 0
	}
	return desired.Instances(s.DB)
}

// PoolerWanted says that the spec has a pooler, ReadPoolWanted that it has one for clients that only read.
func (s *secretFacts) PoolerWanted() bool { return s.DB.Spec.Pooler != nil }

func (s *secretFacts) ReadPoolWanted() bool {
	return s.PoolerWanted() && s.DB.Spec.Pooler.ReadOnly != nil
}

// PoolSecretWritten says that NAME-pool is known to have the certificate that the poolers are to show.
func (s *secretFacts) PoolSecretWritten() bool {
	return !s.PoolerWanted() ||
		s.Pooler.Secret == desired.PoolRevision(s.DB, s.Authority.Issuer).Name
}
