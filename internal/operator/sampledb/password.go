package sampledb

import (
	"context"
	"errors"
	"fmt"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/protocol"
)

// passwordTopic rotates the application's password.
type passwordTopic struct {
	secretsBase
	// passwordSeen, passwordRotated is the condition, where another was asked for.
	passwordSeen    bool
	passwordRotated verdict
}

// rotation is what a decision about another password in NAME-app is made of (docs/trust.md, "The password").
type rotation struct {
	// asked says that a user asks for another one.
	asked bool
	// foreign says that there is no Secret NAME-app of the SampleDB: its passwords are the users' own.
	foreign bool
	// starting says that the init Job has not done its work, restoring that a restore in place is under way.
	starting, restoring bool
	// sides says that a blue/green upgrade has two sides: the link carries no password.
	sides bool
	// primary takes writes, "" where none is known to; able says that its agent can be asked.
	primary string
	able    bool
	// written says that the Secret has the password of the epoch, given that the server was told it.
	written, given bool
}

// rotationStep is the whole of what a reconcile does about a password.
type rotationStep string

// The steps of a rotation.
const (
	rotationNone  rotationStep = "none"
	rotationWait  rotationStep = "wait"  // nothing can be done now
	rotationBegin rotationStep = "begin" // another epoch
	rotationGive  rotationStep = "give"  // the server the password of the epoch
)

// nextOfRotation is what to do, and for rotationWait why nothing can be. One rotation ends before the next begins. The
// Secret comes first: where somebody has to delete it, the server keeps the password that is in it. What keeps the
// server from being told keeps a rotation from beginning, so that the two have the same but for moments.
func nextOfRotation(q rotation) (step rotationStep, reason, sentence string) {
	behind := !q.written || !q.given
	wait := v1.ReasonRotationWaits
	if behind {
		wait = v1.ReasonSettingPassword
	}
	switch {
	case !q.asked && !behind:
		return rotationNone, "", ""
	case q.foreign:
		return rotationWait, v1.ReasonRotationWaits, "by spec.init.none there is no Secret for applications: change " +
			"the Secret that the PostgreSQL names, or the password with SQL, and remove the annotation"
	case q.starting:
		return rotationWait, v1.ReasonRotationWaits, "waits for the init Job to have done its work"
	case !q.written:
		return rotationWait, v1.ReasonWritingSecret, ""
	case q.restoring:
		return rotationWait, wait, "waits for the end of the restore in place"
	case q.sides:
		return rotationWait, wait, sidesHold
	case q.primary == "":
		return rotationWait, wait, "waits for an instance that takes writes"
	case !q.able:
		return rotationWait, wait, fmt.Sprintf("the agent of %s is of an earlier release and can't change a password: "+
			"let another one lead whose Pod is newer, or delete that Pod, so that it is made anew", q.primary)
	case behind:
		return rotationGive, "", ""
	}
	return rotationBegin, "", ""
}

// observePassword takes over which password is where. A SampleDB that is not initialised yet begins with the password
// that is on record: the init Job gives it to the server.
func (s *passwordTopic) observePassword() {
	if known := s.db.Status.Password; known != nil {
		s.password = *known
	}
	s.password.Epoch = s.Credentials.Epoch(s.db)
	if s.starting() {
		s.password.Server, s.password.Restored = s.password.Epoch, s.config.Restored
	}
}

// rotation is what the scope knows of it.
func (s *secretFacts) rotation() rotation {
	p, primary := s.password, s.primary()
	return rotation{
		asked:     s.db.Annotations[naming.AnnotationRotatePassword] != "",
		foreign:   !desired.Initialises(s.db),
		starting:  s.starting(),
		restoring: s.restoreWanted(),
		sides:     desired.TwoSides(s.db),
		primary:   primary,
		able:      s.seen.answers[primary].Protocol >= 1,
		written:   p.Secret == p.Epoch,
		// An earlier state of the data may have an earlier password.
		given: p.Server == p.Epoch && (p.Epoch == 0 || p.Restored == s.config.Restored),
	}
}

// rotates says that a rotation is asked for or under way.
func (s *secretFacts) rotates() bool {
	q := s.rotation()
	return desired.Initialises(s.db) && (q.asked || !q.written || !q.given)
}

// applyPassword does the next step of a rotation of the password.
func (s *passwordTopic) applyPassword(ctx context.Context) error {
	s.passwordSeen = true
	step, reason, sentence := nextOfRotation(s.rotation())
	switch step {
	case rotationBegin:
		if failed := s.askPassword(ctx, ""); failed != nil {
			reason, sentence = v1.ReasonRotationWaits, failed.Error()
			break
		}
		if err := s.beginRotation(ctx); err != nil {
			return err
		}
		reason = v1.ReasonWritingSecret
	case rotationGive:
		if failed := s.givePassword(ctx); failed != nil {
			reason, sentence = v1.ReasonSettingPassword, failed.Error()
		}
	case rotationNone, rotationWait:
	}
	switch name := naming.AppSecret(s.db.Name); {
	case reason == v1.ReasonWritingSecret:
		s.passwordRotated = no(reason, fmt.Sprintf("waits for the former Secret %s to go; if that takes longer than a "+
			"minute: kubectl delete secret %s", name, name))
	case reason != "":
		s.passwordRotated = no(reason, sentence)
	case s.password.Epoch > 0:
		s.passwordRotated = yes(v1.ReasonRotated,
			fmt.Sprintf("the Secret %s and the server have the password of epoch %d", name, s.password.Epoch))
	}
	return nil
}

// beginRotation puts another epoch on record, and takes the request away with the same write: it is begun
// once, whatever fails afterwards.
func (s *passwordTopic) beginRotation(ctx context.Context) error {
	epoch := s.Credentials.Next(s.password.Epoch)
	if err := s.annotate(ctx, map[string]string{
		naming.AnnotationRotatePassword: "",
		naming.AnnotationCredentials:    s.Credentials.Credentials(s.db, epoch),
	}); err != nil {
		return err
	}
	s.password.Epoch = epoch
	s.attempts.forget(s.db.UID) // the Secret is tried at once
	return nil
}

// givePassword has the primary's agent give the application's role the password of the epoch.
func (s *passwordTopic) givePassword(ctx context.Context) error {
	password, err := s.Credentials.Password(s.db, s.password.Epoch)
	if err != nil {
		return fmt.Errorf("make the password: %w", err)
	}
	verifier, err := scram.Verifier(password)
	if err != nil {
		return err
	}
	if err := s.askPassword(ctx, verifier); err != nil {
		return err
	}
	s.password.Server, s.password.Restored = s.password.Epoch, s.config.Restored
	return nil
}

// askPassword asks the primary's agent to give the application's role a password, or without a verifier whether it
// could have another one. Its error is a sentence for the user.
func (s *passwordTopic) askPassword(ctx context.Context, verifier string) error {
	ordinal, _ := naming.Ordinal(s.primary())
	pod := s.seen.pods[ordinal]
	if pod == nil {
		return fmt.Errorf("the primary %s has no Pod any more", s.primary())
	}
	ctx, cancel := context.WithTimeout(ctx, patiencePassword)
	defer cancel()
	result, err := s.Agents.Password(ctx, s.db.UID, pod.Status.PodIP, s.config,
		protocol.PasswordRequest{Role: desired.AppRole(s.db), Verifier: verifier})
	switch {
	case err != nil:
		return fmt.Errorf("%s could not be asked, and will be asked again: %w", pod.Name, err)
	case result.Refusal != nil:
		return errors.New(result.Refusal.Message)
	}
	return nil
}

// passwordStatus is nil as long as the password is the first one.
func (s *passwordTopic) passwordStatus() *v1.PasswordStatus {
	if s.password.Epoch == 0 {
		return nil
	}
	out := s.password
	return &out
}

// createAppSecret creates NAME-app with the password of the epoch and the authorities that are trusted, and says
// whether one was there. A former one goes with its revision.
func (s *passwordTopic) createAppSecret(ctx context.Context) (there bool, err error) {
	all, err := s.revisions(ctx, naming.AppSecret(s.db.Name))
	if err != nil {
		return false, err
	}
	for _, have := range all { // of a later password than is on record: what was read may be out of date, or lost
		s.password.Epoch = max(s.password.Epoch, have.Revision-1)
	}
	epoch, trusted, trust, hosts := s.password.Epoch, s.trustedEpochs(), s.wantedTrust(), s.wantedHosts()
	password, err := s.Credentials.Password(s.db, epoch)
	if err != nil {
		return false, fmt.Errorf("make the password: %w", err)
	}
	revision, err := s.keepRevision(ctx, naming.AppSecret(s.db.Name), all,
		desired.AppRevision(s.db, epoch, trusted, trust, hosts))
	if err != nil {
		return false, err
	}
	secret := desired.AppSecret(s.db, revision, password, []byte(s.config.ClientAuthorities()))
	known := s.password.Secret == epoch && s.appWritten()
	there, err = s.createSecret(ctx, revision, secret, known)
	if err == nil && !there {
		s.password.Secret, s.authority.App, s.trust = epoch, trusted, trust
		s.pooler.App, s.pooler.AppReadOnly = s.poolerWanted(), s.readPoolWanted()
		s.appHosts = int32(hosts) //nolint:gosec // at most a few
	}
	return there, err
}

// appWritten says that NAME-app is known to be as it should, but for the password.
func (s *secretFacts) appWritten() bool {
	return s.appTrusts() && int(s.appHosts) == s.wantedHosts()
}

// appTrusts says the same without the hosts of instances.
func (s *secretFacts) appTrusts() bool {
	return s.authority.App == s.trustedEpochs() && s.trust == s.wantedTrust() &&
		s.pooler.App == s.poolerWanted() && s.pooler.AppReadOnly == s.readPoolWanted()
}

// wantedHosts is of how many instances NAME-app names the hosts. One of an earlier release names none, and stays until
// it is made anew for another reason: applications may be restarted when it changes.
func (s *secretFacts) wantedHosts() int {
	if s.appHosts == 0 && !s.starting() && s.password.Secret == s.password.Epoch && s.appTrusts() {
		return 0
	}
	return desired.Instances(s.db)
}
