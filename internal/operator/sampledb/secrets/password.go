package secrets

import (
	"context"
	"errors"
	"fmt"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/protocol"
)

// passwordTopic rotates the application's password.
type passwordTopic struct {
	base
	// PasswordSeen, PasswordRotated is the condition, where another was asked for.
	PasswordSeen    bool
	PasswordRotated world.Verdict
}

// nextOfRotation is what to do, and for RotationWait why nothing can be. One rotation ends before the next begins. The
// Secret comes first: where somebody has to delete it, the server keeps the password that is in it. What keeps the
// server from being told keeps a rotation from beginning, so that the two have the same but for moments.
func nextOfRotation(q world.Rotation) (step world.RotationStep, reason, sentence string) {
	behind := !q.Written || !q.Given
	wait := v1.ReasonRotationWaits
	if behind {
		wait = v1.ReasonSettingPassword
	}
	switch {
	case !q.Asked && !behind:
		return world.RotationNone, "", ""
	case q.Foreign:
		return world.RotationWait, v1.ReasonRotationWaits,
			"by spec.init.none there is no Secret for applications: change " +
				"the Secret that the PostgreSQL names, or the password with SQL, and remove the annotation"
	case q.Starting:
		return world.RotationWait, v1.ReasonRotationWaits, "waits for the init Job to have done its work"
	case !q.Written:
		return world.RotationWait, v1.ReasonWritingSecret, ""
	case q.Restoring:
		return world.RotationWait, wait, "waits for the end of the restore in place"
	case q.Sides:
		return world.RotationWait, wait, world.SidesHold
	case q.Primary == "":
		return world.RotationWait, wait, "waits for an instance that takes writes"
	case !q.Able:
		return world.RotationWait, wait,
			fmt.Sprintf("the agent of %s is of an earlier release and can't change a password: "+
				"let another one lead whose Pod is newer, or delete that Pod, so that it is made anew", q.Primary)
	case behind:
		return world.RotationGive, "", ""
	}
	return world.RotationBegin, "", ""
}

// ObservePassword takes over which password is where. A SampleDB that is not initialised yet begins with the password
// that is on record: the init Job gives it to the server.
func (s *passwordTopic) ObservePassword() {
	if known := s.DB.Status.Password; known != nil {
		s.Password = *known
	}
	s.Password.Epoch = s.Credentials.Epoch(s.DB)
	if s.Starting() {
		s.Password.Server, s.Password.Restored = s.Password.Epoch, s.Config.Restored
	}
}

// ApplyPassword does the next step of a rotation of the password.
func (s *passwordTopic) ApplyPassword(ctx context.Context) error {
	s.PasswordSeen = true
	step, reason, sentence := nextOfRotation(s.Rotation())
	switch step {
	case world.RotationBegin:
		if failed := s.askPassword(ctx, ""); failed != nil {
			reason, sentence = v1.ReasonRotationWaits, failed.Error()
			break
		}
		if err := s.beginRotation(ctx); err != nil {
			return err
		}
		reason = v1.ReasonWritingSecret
	case world.RotationGive:
		if failed := s.givePassword(ctx); failed != nil {
			reason, sentence = v1.ReasonSettingPassword, failed.Error()
		}
	case world.RotationNone, world.RotationWait:
	}
	switch name := naming.AppSecret(s.DB.Name); {
	case reason == v1.ReasonWritingSecret:
		s.PasswordRotated = world.No(reason,
			fmt.Sprintf("waits for the former Secret %s to go; if that takes longer than a "+
				"minute: kubectl delete secret %s", name, name))
	case reason != "":
		s.PasswordRotated = world.No(reason, sentence)
	case s.Password.Epoch > 0:
		s.PasswordRotated = world.Yes(v1.ReasonRotated,
			fmt.Sprintf("the Secret %s and the server have the password of epoch %d", name, s.Password.Epoch))
	}
	return nil
}

// beginRotation puts another epoch on record, and takes the request away with the same write: it is begun
// once, whatever fails afterwards.
func (s *passwordTopic) beginRotation(ctx context.Context) error {
	epoch := s.Credentials.Next(s.Password.Epoch)
	record := map[string]string{naming.AnnotationCredentials: s.Credentials.Credentials(s.DB, epoch)}
	if err := s.Record(ctx, record, world.RequestRotatePassword); err != nil {
		return err
	}
	s.Password.Epoch = epoch
	s.Attempts.Forget(s.DB.UID) // the Secret is tried at once
	return nil
}

// givePassword has the primary's agent give the application's role the password of the epoch.
func (s *passwordTopic) givePassword(ctx context.Context) error {
	password, err := s.Credentials.Password(s.DB, s.Password.Epoch)
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
	s.Password.Server, s.Password.Restored = s.Password.Epoch, s.Config.Restored
	return nil
}

// askPassword asks the primary's agent to give the application's role a password, or without a verifier whether it
// could have another one. Its error is a sentence for the user.
func (s *passwordTopic) askPassword(ctx context.Context, verifier string) error {
	ordinal, _ := naming.Ordinal(s.Primary())
	pod := s.Seen.Pods[ordinal]
	if pod == nil {
		return fmt.Errorf("the primary %s has no Pod any more", s.Primary())
	}
	ctx, cancel := context.WithTimeout(ctx, world.PatiencePassword)
	defer cancel()
	result, err := s.Agents.Password(ctx, s.DB.UID, pod.Status.PodIP, s.Config,
		protocol.PasswordRequest{Role: desired.AppRole(s.DB), Verifier: verifier})
	switch {
	case err != nil:
		return fmt.Errorf("%s could not be asked, and will be asked again: %w", pod.Name, err)
	case result.Refusal != nil:
		return errors.New(result.Refusal.Message)
	}
	return nil
}

// PasswordStatus is nil as long as the password is the first one.
func (s *passwordTopic) PasswordStatus() *v1.PasswordStatus {
	if s.Password.Epoch == 0 {
		return nil
	}
	out := s.Password
	return &out
}

// createAppSecret creates NAME-app with the password of the epoch and the authorities that are trusted, and says
// whether one was there. A former one goes with its revision.
func (s *passwordTopic) createAppSecret(ctx context.Context) (there bool, err error) {
	all, err := s.Revisions(ctx, naming.AppSecret(s.DB.Name))
	if err != nil {
		return false, err
	}
	for _, have := range all { // of a later password than is on record: what was read may be out of date, or lost
		s.Password.Epoch = max(s.Password.Epoch, have.Revision-1)
	}
	epoch, trusted, trust, hosts := s.Password.Epoch, s.TrustedEpochs(), s.WantedTrust(), s.WantedHosts()
	password, err := s.Credentials.Password(s.DB, epoch)
	if err != nil {
		return false, fmt.Errorf("make the password: %w", err)
	}
	revision, err := s.KeepRevision(ctx, naming.AppSecret(s.DB.Name), all,
		desired.AppRevision(s.DB, epoch, trusted, trust, hosts))
	if err != nil {
		return false, err
	}
	secret := desired.AppSecret(s.DB, revision, password, []byte(s.Config.ClientAuthorities()))
	known := s.Password.Secret == epoch && s.AppWritten()
	there, err = s.CreateSecret(ctx, revision, secret, known)
	if err == nil && !there {
		s.Password.Secret, s.Authority.App, s.Trust = epoch, trusted, trust
		s.Pooler.App, s.Pooler.AppReadOnly = s.PoolerWanted(), s.ReadPoolWanted()
		s.AppHosts = int32(hosts) //nolint:gosec // at most a few
	}
	return there, err
}
