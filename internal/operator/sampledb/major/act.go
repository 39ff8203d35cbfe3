package major

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// ActOnUpgrade does what a phase asks for.
func (s *upgradeTopic) ActOnUpgrade(
	ctx context.Context, d major.MajorDecision, x upgrades.Upgrade, w Work,
) error {
	switch d.Phase {
	case major.PhasePulling:
		return s.nodes.Start(ctx, s.Upgrade.Image, x.To, w.pulls)
	case major.PhaseChecking:
		return s.StartUpgradeJob(ctx, x, upgrades.CheckJob(s.DB, s.Settings, x))
	case major.PhaseBackingUp:
		return s.StartUpgradeBackup(ctx)
	case major.PhaseRehearsing:
		if err := s.keepUpgradeJobs(ctx, x.CheckName(s.DB), x.RehearsalName(s.DB)); err != nil {
			return err
		}
		return s.all.startRehearsal(ctx, x, w.rehearsal.backup)
	case major.PhasePreparing:
		return s.prepareUpgrade(ctx)
	case major.PhaseUpgrading:
		return s.upgradeData(ctx, w)
	case major.PhaseStarting:
		return s.takeOverUpgrade(ctx, w)
	case major.PhaseUpgraded:
		s.AddEvent(world.EventUpgraded, s.UpgradedSentence())
		s.rest.DueFinish(fmt.Sprintf("%d to %d", s.Upgrade.From, s.Upgrade.To),
			v1.FinishStatistics, v1.FinishIndexes, v1.FinishExtensions)
		return s.EndUpgrade(ctx)
	case major.PhaseFailed:
		if s.DB.Status.Upgrade.Step != v1.UpgradeFailed {
			s.AddWarning(world.EventUpgradeFailed, s.Upgrade.Message)
		}
		if s.DB.Status.Upgrade.Step == v1.UpgradeUpgrading {
			// No instance starts before that is on record: what one of them undoes can't be taken over any more.
			s.Stopped = &world.Problem{Reason: v1.ReasonUpgradeFailed, Message: s.Upgrade.Message,
				Wait: world.PauseShort}
		}
		return s.giveUpUpgrade(ctx)
	case major.PhaseWaiting, major.PhaseClosing:
	}
	return nil
}

// StartUpgradeJob makes a Job of an upgrade with what its Pod mounts. Others that are left are removed.
func (s *upgradeTopic) StartUpgradeJob(ctx context.Context, x upgrades.Upgrade, job *batchv1.Job) error {
	kept := []string{x.CheckName(s.DB), job.Name}
	if u := s.DB.Status.Upgrade; !u.Rehearsal.Ended() { // what was found is not on record yet
		kept = append(kept, x.RehearsalName(s.DB))
	}
	if err := s.keepUpgradeJobs(ctx, kept...); err != nil || s.Job(job.Name) != nil {
		return err
	}
	if s.formerTry() != "" {
		return nil
	}
	config, err := upgrades.ConfigMap(s.DB, upgrades.Settings(s.DB, s.Config, x))
	if err != nil {
		return err
	}
	for _, object := range []client.Object{config, upgrades.Policy(s.DB, s.Settings), job} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	return nil
}

// StartUpgradeBackup has a backup taken. One that has failed is not taken again before somebody deletes it.
func (s *upgradeTopic) StartUpgradeBackup(ctx context.Context) error {
	backup := upgrades.Backup(s.DB, s.Upgrade.ID)
	err := s.Client.Create(ctx, backup, client.FieldOwner(naming.FieldOwner))
	if client.IgnoreAlreadyExists(err) != nil {
		return world.Refused(err, "DatabaseBackup", backup.Name)
	}
	if err == nil {
		s.AddEvent(world.EventBackup,
			fmt.Sprintf("%s is taken: before the upgrade to PostgreSQL %d", backup.Name, s.Upgrade.To))
	}
	return nil
}

// prepareUpgrade has the Pod that upgrades the data wait on the node of the primary.
func (s *upgradeTopic) prepareUpgrade(ctx context.Context) error {
	primary := s.Primary()
	ordinal, _ := naming.Ordinal(primary)
	pod := s.Seen.Pods[ordinal]
	if primary == "" || pod == nil {
		return nil
	}
	s.Upgrade.Instance, s.Upgrade.Node = primary, pod.Spec.NodeName
	x := s.UpgradeOf()
	return s.StartUpgradeJob(ctx, x, upgrades.Job(s.DB, s.Settings, x))
}

// upgradeData stops all instances, and then has the Pod begin.
func (s *upgradeTopic) upgradeData(ctx context.Context, w Work) error {
	s.Stopped = &world.Problem{Reason: v1.ReasonUpgrading, Message: s.Upgraded.Message, Wait: world.PauseShort}
	if len(s.Seen.Pods) > 0 || !w.waits {
		return nil
	}
	begin := protocol.UpgradeBegin{ID: s.Upgrade.ID}
	if err := s.Pods.Begin(ctx, naming.IdentityUpgrade, w.pod.Status.PodIP, s.Config, begin); err != nil {
		log.FromContext(ctx).Info("the Pod of the upgrade could not be told to begin; it is told again",
			"pod", w.pod.Name, "reason", err.Error())
	}
	return nil
}

// takeOverUpgrade has the instances start with the upgraded data. That they are to is in the ConfigMap, with which
// version and whose data it is, in one write.
func (s *upgradeTopic) takeOverUpgrade(ctx context.Context, w Work) error {
	u := s.Upgrade
	u.Method, u.Version = cmp.Or(w.result.Method, u.Method), cmp.Or(w.result.To, u.Version)
	s.Image = &v1.ImageStatus{Name: desired.WantedImage(s.DB, s.Settings), Version: u.Version}
	if desired.FixedImage(u.Image) {
		s.Image.Runs = u.Image
	}
	if s.Config.Upgraded == u.ID {
		return nil
	}
	s.Stopped = &world.Problem{Reason: v1.ReasonUpgrading, Message: s.Upgraded.Message, Wait: world.PauseShort}
	if err := s.stillUpgrades(ctx); err != nil {
		return err
	}
	known, err := s.rest.Known()
	if err != nil {
		return err
	}
	known.Upgraded, known.SystemIdentifier, known.Major = u.ID, w.result.SystemIdentifier, int(u.To)
	next := s.DB.DeepCopy()
	next.Status.Major, next.Status.Upgrade = u.To, u
	s.Config = desired.Config(next, known)
	s.AddEvent(world.EventUpgrading,
		fmt.Sprintf("the data is that of PostgreSQL %s now (%s); the instances start with it",
			u.Version, u.Method))
	return s.rest.ApplyConfig(ctx)
}

// stillUpgrades refuses where the upgrade has been given up already, by the record itself and not what the operator has
// of it: the former version may have taken writes since.
func (s *upgradeTopic) stillUpgrades(ctx context.Context) error {
	var live v1.SampleDB
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.DB), &live); err != nil {
		return fmt.Errorf("read how far the upgrade is: %w", err)
	}
	u := live.Status.Upgrade
	if !u.SameAs(s.Upgrade) || u.Step != v1.UpgradeUpgrading && u.Step != v1.UpgradeStarting {
		return &world.Problem{Reason: v1.ReasonUpgrading,
			Message: "the record of the upgrade has changed: it is read again", Wait: world.PauseShort}
	}
	return nil
}

// giveUpUpgrade removes the Jobs of an upgrade that has failed. The instances start as before; the one whose volume was
// worked on undoes that first.
func (s *upgradeTopic) giveUpUpgrade(ctx context.Context) error {
	if err := s.Settle(ctx, world.RequestUpdate); err != nil {
		return err
	}
	return s.EndUpgrade(ctx)
}

// EndUpgrade removes the Jobs of an upgrade.
func (s *upgradeTopic) EndUpgrade(ctx context.Context) error {
	if err := s.keepUpgradeJobs(ctx); err != nil {
		return err
	}
	return s.nodes.End(ctx)
}

// holdUpgrade has an upgrade that has not sent clients away begin anew after the start. One that has failed has failed.
func (s *upgradeTopic) holdUpgrade(ctx context.Context) error {
	if s.Upgrade.Step == v1.UpgradeFailed {
		s.Upgraded = s.upgradeVerdict()
	} else {
		s.NoteMajor(major.MajorDecision{
			Phase: major.PhaseWaiting, Says: "It begins when the database is started: " + s.Stop.Message,
		})
	}
	return s.EndUpgrade(ctx)
}

// keepUpgradeJobs removes the Jobs of upgrades but those of some names.
func (s *upgradeTopic) keepUpgradeJobs(ctx context.Context, names ...string) error {
	return s.RemoveJobs(ctx, func(job *batchv1.Job) bool {
		component := job.Labels[naming.LabelComponent]
		return (component == naming.ComponentUpgrade || component == naming.ComponentRehearse) &&
			!slices.Contains(names, job.Name)
	})
}

// KeepFormer keeps the data of the former version for its time, or until it is not wanted any more.
func (s *upgradeTopic) KeepFormer(ctx context.Context) error {
	u := s.Upgrade
	asked := s.Asks(world.RequestAcceptUpgrade)
	if until := u.CompletedAt.Add(upgrades.KeepFormer(s.DB)); !u.Accepted && (asked || !s.Now.Before(until)) {
		u.Accepted = true
		s.AddEvent(world.EventUpgradeAccepted, fmt.Sprintf("the data of PostgreSQL %d is removed", u.From))
	} else if !u.Accepted {
		s.UpgradeNext = until
	}
	u.WayBack = s.wayBack()
	s.Upgraded = s.upgradeVerdict()
	return s.Settle(ctx, world.RequestAcceptUpgrade)
}

// askUpgrade asks the Pod that upgrades the data how far it is, and notes for how long it has not answered.
func (s *upgradeTopic) askUpgrade(ctx context.Context, out *Work) {
	var p *protocol.BackupProgress
	var whom types.UID
	if out.pod != nil && !pods.Ended(out.pod) {
		whom, out.job.Lost = out.pod.UID, pods.LostOf(out.pod, s.Now)
		p = pods.Ask(ctx, s.Client, s.Pods, naming.IdentityUpgrade, out.pod)
	}
	out.job.Silent = s.Unanswered.Note(s.DB.UID, whom, p != nil, s.Now)
	if p == nil {
		return
	}
	out.waits, out.job.Says = p.Step == protocol.StepAwaitsBegin, p.Step
	if p.Upgrade != nil && p.Upgrade.SystemIdentifier != "" {
		out.job.Done, out.result = true, p.Upgrade
	}
}
