package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// actOnUpgrade does what a phase asks for.
func (s *upgradeTopic) actOnUpgrade(
	ctx context.Context, d upgrade.MajorDecision, x desired.Upgrade, w upgradeWork,
) error {
	switch d.Phase {
	case upgrade.PhasePulling:
		return s.all.pullImage(ctx, s.upgrade.Image, x.To, w.pulls)
	case upgrade.PhaseChecking:
		return s.startUpgradeJob(ctx, x, desired.UpgradeCheckJob(s.db, s.Settings, x))
	case upgrade.PhaseBackingUp:
		return s.startUpgradeBackup(ctx)
	case upgrade.PhaseRehearsing:
		if err := s.keepUpgradeJobs(ctx, x.CheckName(s.db), x.RehearsalName(s.db)); err != nil {
			return err
		}
		return s.all.startRehearsal(ctx, x, w.rehearsal.backup)
	case upgrade.PhasePreparing:
		return s.prepareUpgrade(ctx)
	case upgrade.PhaseUpgrading:
		return s.upgradeData(ctx, w)
	case upgrade.PhaseStarting:
		return s.takeOverUpgrade(ctx, w)
	case upgrade.PhaseUpgraded:
		s.addEvent(eventUpgraded, s.upgradedSentence())
		s.all.dueFinish(fmt.Sprintf("%d to %d", s.upgrade.From, s.upgrade.To),
			v1.FinishStatistics, v1.FinishIndexes, v1.FinishExtensions)
		return s.endUpgrade(ctx)
	case upgrade.PhaseFailed:
		if s.db.Status.Upgrade.Step != v1.UpgradeFailed {
			s.addWarning(eventUpgradeFailed, s.upgrade.Message)
		}
		if s.db.Status.Upgrade.Step == v1.UpgradeUpgrading {
			// No instance starts before that is on record: what one of them undoes can't be taken over any more.
			s.stopped = &problem{v1.ReasonUpgradeFailed, s.upgrade.Message, pauseShort}
		}
		return s.giveUpUpgrade(ctx)
	case upgrade.PhaseWaiting, upgrade.PhaseClosing:
	}
	return nil
}

// startUpgradeJob makes a Job of an upgrade with what its Pod mounts. Others that are left are removed.
func (s *upgradeTopic) startUpgradeJob(ctx context.Context, x desired.Upgrade, job *batchv1.Job) error {
	kept := []string{x.CheckName(s.db), job.Name}
	if u := s.db.Status.Upgrade; !u.Rehearsal.Ended() { // what was found is not on record yet
		kept = append(kept, x.RehearsalName(s.db))
	}
	if err := s.keepUpgradeJobs(ctx, kept...); err != nil || s.job(job.Name) != nil {
		return err
	}
	if s.formerTry() != "" {
		return nil
	}
	config, err := desired.UpgradeConfigMap(s.db, desired.UpgradeSettings(s.db, s.config, x))
	if err != nil {
		return err
	}
	for _, object := range []client.Object{config, desired.UpgradePolicy(s.db, s.Settings), job} {
		if err := s.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	return nil
}

// startUpgradeBackup has a backup taken. One that has failed is not taken again before somebody deletes it.
func (s *upgradeTopic) startUpgradeBackup(ctx context.Context) error {
	backup := desired.UpgradeBackup(s.db, s.upgrade.ID)
	err := s.Client.Create(ctx, backup, client.FieldOwner(naming.FieldOwner))
	if client.IgnoreAlreadyExists(err) != nil {
		return refused(err, "DatabaseBackup", backup.Name)
	}
	if err == nil {
		s.addEvent(eventBackup,
			fmt.Sprintf("%s is taken: before the upgrade to PostgreSQL %d", backup.Name, s.upgrade.To))
	}
	return nil
}

// prepareUpgrade has the Pod that upgrades the data wait on the node of the primary.
func (s *upgradeTopic) prepareUpgrade(ctx context.Context) error {
	primary := s.primary()
	ordinal, _ := naming.Ordinal(primary)
	pod := s.seen.pods[ordinal]
	if primary == "" || pod == nil {
		return nil
	}
	s.upgrade.Instance, s.upgrade.Node = primary, pod.Spec.NodeName
	x := s.upgradeOf()
	return s.startUpgradeJob(ctx, x, desired.UpgradeJob(s.db, s.Settings, x))
}

// upgradeData stops all instances, and then has the Pod begin.
func (s *upgradeTopic) upgradeData(ctx context.Context, w upgradeWork) error {
	s.stopped = &problem{v1.ReasonUpgrading, s.upgraded.message, pauseShort}
	if len(s.seen.pods) > 0 || !w.waits {
		return nil
	}
	begin := protocol.UpgradeBegin{ID: s.upgrade.ID}
	if err := s.Pods.Begin(ctx, naming.IdentityUpgrade, w.pod.Status.PodIP, s.config, begin); err != nil {
		log.FromContext(ctx).Info("the Pod of the upgrade could not be told to begin; it is told again",
			"pod", w.pod.Name, "reason", err.Error())
	}
	return nil
}

// takeOverUpgrade has the instances start with the upgraded data. That they are to is in the ConfigMap, with which
// version and whose data it is, in one write.
func (s *upgradeTopic) takeOverUpgrade(ctx context.Context, w upgradeWork) error {
	u := s.upgrade
	u.Method, u.Version = cmp.Or(w.result.Method, u.Method), cmp.Or(w.result.To, u.Version)
	s.image = &v1.ImageStatus{Name: desired.WantedImage(s.db, s.Settings), Version: u.Version}
	if desired.FixedImage(u.Image) {
		s.image.Runs = u.Image
	}
	if s.config.Upgraded == u.ID {
		return nil
	}
	s.stopped = &problem{v1.ReasonUpgrading, s.upgraded.message, pauseShort}
	if err := s.stillUpgrades(ctx); err != nil {
		return err
	}
	known, err := s.others.known()
	if err != nil {
		return err
	}
	known.Upgraded, known.SystemIdentifier, known.Major = u.ID, w.result.SystemIdentifier, int(u.To)
	next := s.db.DeepCopy()
	next.Status.Major, next.Status.Upgrade = u.To, u
	s.config = desired.Config(next, known)
	s.addEvent(eventUpgrading, fmt.Sprintf("the data is that of PostgreSQL %s now (%s); the instances start with it",
		u.Version, u.Method))
	return s.others.applyConfig(ctx)
}

// stillUpgrades refuses where the upgrade has been given up already, by the record itself and not what the operator has
// of it: the former version may have taken writes since.
func (s *upgradeTopic) stillUpgrades(ctx context.Context) error {
	var live v1.SampleDB
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.db), &live); err != nil {
		return fmt.Errorf("read how far the upgrade is: %w", err)
	}
	u := live.Status.Upgrade
	if !u.SameAs(s.upgrade) || u.Step != v1.UpgradeUpgrading && u.Step != v1.UpgradeStarting {
		return &problem{v1.ReasonUpgrading, "the record of the upgrade has changed: it is read again", pauseShort}
	}
	return nil
}

// giveUpUpgrade removes the Jobs of an upgrade that has failed. The instances start as before; the one whose volume was
// worked on undoes that first.
func (s *upgradeTopic) giveUpUpgrade(ctx context.Context) error {
	if err := s.annotate(ctx, map[string]string{naming.AnnotationUpdate: ""}); err != nil {
		return err
	}
	return s.endUpgrade(ctx)
}

// endUpgrade removes the Jobs of an upgrade.
func (s *upgradeTopic) endUpgrade(ctx context.Context) error {
	if err := s.keepUpgradeJobs(ctx); err != nil {
		return err
	}
	return s.all.endPulls(ctx)
}

// holdUpgrade has an upgrade that has not sent clients away begin anew after the start. One that has failed has failed.
func (s *upgradeTopic) holdUpgrade(ctx context.Context) error {
	if s.upgrade.Step == v1.UpgradeFailed {
		s.upgraded = s.upgradeVerdict()
	} else {
		s.noteMajor(upgrade.MajorDecision{
			Phase: upgrade.PhaseWaiting, Says: "It begins when the database is started: " + s.stop.Message,
		})
	}
	return s.endUpgrade(ctx)
}

// keepUpgradeJobs removes the Jobs of upgrades but those of some names.
func (s *upgradeTopic) keepUpgradeJobs(ctx context.Context, names ...string) error {
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		component := job.Labels[naming.LabelComponent]
		if component != naming.ComponentUpgrade && component != naming.ComponentRehearse ||
			!metav1.IsControlledBy(job, s.db) || slices.Contains(names, job.Name) {
			continue
		}
		if err := s.jobs().Remove(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// keepFormer keeps the data of the former version for its time, or until it is not wanted any more.
func (s *upgradeTopic) keepFormer(ctx context.Context) error {
	u := s.upgrade
	asked := s.db.Annotations[naming.AnnotationAcceptUpgrade] != ""
	if until := u.CompletedAt.Add(desired.KeepFormer(s.db)); !u.Accepted && (asked || !s.now.Before(until)) {
		u.Accepted = true
		s.addEvent(eventUpgradeAccepted, fmt.Sprintf("the data of PostgreSQL %d is removed", u.From))
	} else if !u.Accepted {
		s.upgradeNext = until
	}
	u.WayBack = s.wayBack()
	s.upgraded = s.upgradeVerdict()
	return s.annotate(ctx, map[string]string{naming.AnnotationAcceptUpgrade: ""})
}
