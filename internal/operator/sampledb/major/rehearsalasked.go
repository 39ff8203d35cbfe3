package major

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/sampledb/world"
)

// look is soon while a rehearsal is asked for alone.
func (s *rehearsalTopic) look() time.Duration {
	if !s.Asks(world.RequestRehearse) {
		return 0
	}
	return world.PauseStuck
}

// applyRehearsal does the next step of a rehearsal that is asked for alone: nothing is upgraded after it.
func (s *rehearsalTopic) applyRehearsal(ctx context.Context) error {
	asked := s.Asked(world.RequestRehearse)
	switch {
	case asked == "":
		return s.withoutRequest(ctx)
	case s.Starting():
		return nil
	}
	x, err := s.rehearsalAsked(asked)
	if err != nil {
		return s.refuseRehearsal(ctx, err)
	}
	job := s.Job(x.RehearsalName(s.DB))
	if job == nil && s.HoldsWork() {
		return nil // it begins after the start
	}
	if job != nil && s.Rehearsal.Ended() && s.Rehearsal.ID == string(job.UID) { // it is on record
		return s.settleRehearsal(ctx, x, job)
	}
	out := rehearsed{backup: s.LastBackup()}
	s.rehearse(ctx, x, major.RehearsalView{Always: true}, &out)
	if job == nil && out.status.Ended() {
		return s.refuseRehearsal(ctx, errors.New(out.Says))
	}
	s.noteRehearsal(out.status, job)
	if job == nil {
		return s.startRehearsal(ctx, x, out.backup)
	}
	s.tellRehearsal(nil, s.Rehearsal)
	return nil
}

// settleRehearsal takes away the request that a Job has fulfilled, and then the Job: a request without it would begin
// another. A request for something else stays.
func (s *rehearsalTopic) settleRehearsal(ctx context.Context, x upgrades.Upgrade, job *batchv1.Job) error {
	if s.Rehearsal.To == int32(x.To) && s.Rehearsal.Image == x.Image { //nolint:gosec // a major version
		if err := s.Settle(ctx, world.RequestRehearse); err != nil {
			return err
		}
	}
	return s.Jobs().Remove(ctx, job)
}

// withoutRequest ends a rehearsal that was given up, and removes the Job of one that could not be removed when it was
// settled.
func (s *rehearsalTopic) withoutRequest(ctx context.Context) error {
	if s.Rehearsal == nil {
		return nil
	}
	if !s.Rehearsal.Ended() {
		s.Rehearsal = nil
	}
	return s.endRehearsals(ctx)
}

// noteRehearsal puts into the status how far the rehearsal is that a Job does, nil where it is only about to be made.
func (s *rehearsalTopic) noteRehearsal(now *v1.RehearsalStatus, job *batchv1.Job) {
	before := s.Rehearsal
	s.Rehearsal = now
	if job == nil {
		return
	}
	now.ID = string(job.UID)
	if before != nil && !before.Ended() {
		now.Backup = cmp.Or(before.Backup, now.Backup) // of many the one with which it began
	}
}

// rehearsalAsked is what is asked for.
func (s *rehearsalTopic) rehearsalAsked(text string) (upgrades.Upgrade, error) {
	from := desired.Major(s.DB)
	to, image, err := major.ParseRehearsal(text, from)
	switch {
	case err != nil:
		return upgrades.Upgrade{}, fmt.Errorf("the annotation %s: %w", world.RequestRehearse, err)
	case s.Upgrading():
		return upgrades.Upgrade{}, errors.New("an upgrade is wanted or under way, which is rehearsed by itself")
	case image == "" && s.DB.Spec.Image != "":
		return upgrades.Upgrade{}, fmt.Errorf("spec.image is of PostgreSQL %d: name the image of %d too, in the "+
			"annotation %s: \"%d IMAGE\"", from, to, world.RequestRehearse, to)
	}
	image = cmp.Or(image, fmt.Sprintf("%s:%d", s.OperatorSettings.PostgreSQL, to))
	return upgrades.Upgrade{ID: upgrades.RehearsalID, From: from, To: to, Image: image}, nil
}

// refuseRehearsal says why there is none, and takes the request away.
func (s *rehearsalTopic) refuseRehearsal(ctx context.Context, why error) error {
	s.Rehearsal = s.rehearsalStatus(upgrades.Upgrade{From: desired.Major(s.DB)},
		major.RehearsalDecision{Outcome: major.OutcomeNotDone, Says: why.Error()}, major.RehearsalView{}, nil)
	s.tellRehearsal(nil, s.Rehearsal)
	if err := s.endRehearsals(ctx); err != nil {
		return err
	}
	return s.Settle(ctx, world.RequestRehearse)
}

// endRehearsals removes the Jobs of rehearsals, while no upgrade has one.
func (s *rehearsalTopic) endRehearsals(ctx context.Context) error {
	if s.Upgrading() {
		return nil
	}
	return s.all.keepUpgradeJobs(ctx)
}
