package bluegreen

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// noteSides says in the status how far the upgrade is.
func (s *bluegreenTopic) noteSides(w sidesWork, d bluegreen.SidesDecision) {
	u, x := s.Upgrade, s.Upgrade.Sides
	before := *x
	s.UpgradeNext = d.At
	if x.Step != string(d.Phase) {
		x.Step, x.Since = string(d.Phase), s.Stamp()
	}
	x.Serves = string(d.Serves)
	if before.Step == v1.UpgradeFailed && d.Phase != major.PhaseFailed {
		x.Run, x.Tried, x.Position = x.Run+1, 0, ""
	}
	if d.PutOff {
		if w.change.refused(bluegreen.NotCompared) { // as often as a change is tried, and no more
			x.Anew = s.sidesOf(protocol.SidesChange, w.green).Run
		}
		x.Tried, x.Since = x.Tried+1, s.Stamp()
	}
	if x.Serves != before.Serves {
		x.Tried = 0
	}
	s.turns = d.PutOff || s.turnsFrom(before, w.view.Open)
	s.notePause(before, d, w.view.Open)
	if d.Phase == bluegreen.PhaseComingHome && d.Serves == bluegreen.Green {
		u.Accepted = true
	}
	x.Done = slices.DeleteFunc(x.Done, func(name string) bool { return !w.needs(s.DB, name) })
	if !s.movesHome(w, d) {
		u.Step, u.Since = x.Step, x.Since
	}
	u.Message, u.Failure, u.WayBack = d.Says, d.Failure, s.sidesWayBack(w, d)
	if d.Phase == major.PhaseFailed && before.Step != v1.UpgradeFailed {
		u.FailedWith = s.inPlace.WantedUpgrade()
		u.Attempt++
		if d.Failure != "" { // it was not given up
			s.AddWarning(world.EventUpgradeFailed, d.Says)
		}
	}
	s.Upgraded = s.sidesVerdict(d)
}

// turnsFrom says that the next step of a change of sides is due at once.
func (s *bluegreenTopic) turnsFrom(before v1.SidesStatus, open bool) bool {
	x := s.Upgrade.Sides
	return x.Step != before.Step || x.Serves != before.Serves ||
		(pausing(x.Step) || !open) && s.Now.Sub(x.Since.Time) < openPatience
}

// openPatience is for how long it is looked again and again whether a side has opened.
const openPatience = 30 * time.Second

// look is at once while sides change.
func (s *bluegreenTopic) look() time.Duration {
	if !s.changesSides() {
		return 0
	}
	return world.PauseShort / 2
}

// changesSides says that a side is being closed or opened, or what follows that is due.
func (s *bluegreenTopic) changesSides() bool {
	if s.turns || s.sideClosed().Status != metav1.ConditionUnknown {
		return s.turns
	}
	was := world.Condition(s.DB.Status, v1.ConditionSideClosed)
	return was != nil && (was.Status != metav1.ConditionUnknown ||
		s.Now.Sub(was.LastTransitionTime.Time) < openPatience)
}

// movesHome says that the steps of status.upgrade are those of the upgrade of blue's own data.
func (s *bluegreenTopic) movesHome(w sidesWork, d bluegreen.SidesDecision) bool {
	return d.Phase == bluegreen.PhaseComingHome && w.view.Leave.Done && !w.view.Return.Done
}

// notePause notes when no client was let in, and when one was again.
func (s *bluegreenTopic) notePause(before v1.SidesStatus, d bluegreen.SidesDecision, open bool) {
	u := s.Upgrade
	exact := s.Now.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	was, is := pausing(before.Step), pausing(string(d.Phase))
	switch {
	case is && !was:
		u.ClosedAt, u.OpenedAt = exact, ""
	case was && !is && d.PutOff:
		u.OpenedAt = exact
		s.AddWarning(world.EventSidesPutOff, d.Says)
	case was && before.Serves != string(d.Serves):
		s.noteChange(d.Serves)
	case !is && open && u.ClosedAt != "" && u.OpenedAt == "" && !u.Closed():
		u.OpenedAt = exact
	}
}

// noteChange tells that the other side serves from now on.
func (s *bluegreenTopic) noteChange(serves bluegreen.Colour) {
	if serves == bluegreen.Green {
		s.Upgrade.CompletedAt = s.Stamp()
		s.AddEvent(world.EventSidesChanged, fmt.Sprintf("PostgreSQL %d serves from now on, on the second side",
			s.Upgrade.To))
		return
	}
	s.AddEvent(world.EventSidesChanged, "the SampleDB's own instances serve again")
}

// sidesWayBack is the way back that there is now.
func (s *bluegreenTopic) sidesWayBack(w sidesWork, d bluegreen.SidesDecision) string {
	switch {
	case d.Phase == major.PhaseUpgraded || d.Phase == bluegreen.PhaseComingHome:
		return v1.WayBackArchive
	case d.Serves == bluegreen.Blue:
		return v1.WayBackCancel
	case w.view.Broken == "" && w.view.Settle.Done:
		return v1.WayBackBack
	}
	return v1.WayBackArchive
}

// sidesVerdict is the condition Upgraded. It is true as soon as clients have the new version.
func (s *bluegreenTopic) sidesVerdict(d bluegreen.SidesDecision) world.Verdict {
	u := s.Upgrade
	switch {
	case d.Phase == major.PhaseFailed:
		return world.No(v1.ReasonUpgradeFailed, u.Message)
	case d.Phase == major.PhaseUpgraded:
		return world.Yes(v1.ReasonUpgraded, u.Message)
	case u.GreenServes() || d.Phase == bluegreen.PhaseComingHome:
		return world.Yes(v1.ReasonUpgraded, u.Message+onTrial)
	}
	return world.No(v1.ReasonUpgrading, fmt.Sprintf("from PostgreSQL %d to %d, step %s: %s", u.From, u.To, u.Sides.Step,
		u.Message)+onTrial)
}

// onTrial is what has to be known of the strategy for as long as docs/bluegreen.md says so at its beginning.
const onTrial = ". The strategy BlueGreen is on trial: see docs/bluegreen.md"

// actOnSides does what a phase asks for.
func (s *bluegreenTopic) actOnSides(ctx context.Context, d bluegreen.SidesDecision, w sidesWork) error {
	if err := s.keepSidesJobs(ctx, w); err != nil {
		return err
	}
	switch d.Phase {
	case major.PhaseChecking:
		x := s.inPlace.UpgradeOf()
		return s.inPlace.StartUpgradeJob(ctx, x, upgrades.CheckJob(s.DB, s.Settings, x))
	case major.PhaseBackingUp:
		return s.inPlace.StartUpgradeBackup(ctx)
	case bluegreen.PhasePublishing:
		return s.startSides(ctx, w, protocol.SidesWork(d.Task))
	case major.PhaseFailed:
		return s.removeSides(ctx)
	case bluegreen.PhaseCancelling:
		return s.cancelSides(ctx, w)
	case major.PhaseUpgraded:
		return s.finishSides(ctx)
	case major.PhaseWaiting:
		return nil
	}
	return s.actBesideGreen(ctx, d, w)
}

// finishSides ends an upgrade that has come home. It has not ended before all is removed: nobody looks for that later.
func (s *bluegreenTopic) finishSides(ctx context.Context) error {
	if err := s.removeSides(ctx); err != nil {
		s.Upgrade.Step, s.Upgrade.Sides.Step = v1.SidesComingHome, v1.SidesComingHome
		return err
	}
	s.AddEvent(world.EventUpgraded, s.inPlace.UpgradedSentence())
	return nil
}

// actBesideGreen does what a phase asks for in which there is, or is to be, a second side.
func (s *bluegreenTopic) actBesideGreen(ctx context.Context, d bluegreen.SidesDecision, w sidesWork) error {
	if d.Phase == bluegreen.PhaseComingHome && d.Serves == bluegreen.Blue {
		if !w.view.Open {
			return nil
		}
		return s.cancelSides(ctx, w)
	}
	if err := s.all.applyGreen(ctx, w); err != nil {
		return err
	}
	switch {
	case d.Task == bluegreen.TaskInPlace: // also while green is not ready
		return s.upgradeHome(ctx, w)
	case pausing(string(d.Phase)):
		return s.handOver(ctx, w)
	case d.PutOff || d.Serves == bluegreen.Green && !w.view.Open:
		return s.forgetAsked(ctx)
	case d.Task == "":
		return nil
	}
	return s.startSides(ctx, w, protocol.SidesWork(d.Task))
}

// upgradeHome upgrades blue's own data in place. No client is there.
func (s *bluegreenTopic) upgradeHome(ctx context.Context, w sidesWork) error {
	if s.otherVersionAsked() {
		return nil
	}
	says := s.Upgraded
	view, err := s.inPlace.MajorView(w.inPlace)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	view.Asked, view.Busy = true, ""
	d := major.DecideMajor(view)
	wayBack, message := s.Upgrade.WayBack, s.Upgrade.Message
	s.inPlace.NoteMajor(d)
	s.Upgrade.WayBack, s.Upgrade.Message, s.Upgraded = wayBack, message, says
	return s.inPlace.ActOnUpgrade(ctx, d, s.inPlace.UpgradeOf(), w.inPlace)
}

// applyGreen makes the second side, or has it be what it is to be. It is let to serve when that is on record.
func (s *greenTopic) applyGreen(ctx context.Context, w sidesWork) error {
	u := s.Upgrade
	if w.green != nil && !world.Ours(w.green, s.DB) {
		return nil // the decision says so
	}
	if w.green == nil && u.Sides.Step != v1.SidesCopying {
		return nil // one that is made now would have what there was at the position
	}
	if g := w.green; g == nil || u.Sides.Step == v1.SidesCopying {
		if err := s.createGreenCertificate(ctx, g); err != nil {
			return err
		}
	}
	x := sides.GreenOf{
		Position: u.Sides.Position, Branch: s.branch(), Version: u.From, Image: desired.NamedImage(s.DB, s.Settings),
		Serves: !s.DB.Status.Upgrade.GreenClosed(), Credentials: s.Credentials.Credentials(s.DB, s.Password.Epoch),
		Have: w.green,
	}
	if g := w.green; g != nil && (g.Spec.Version == u.To || g.Status.Major == u.From && isReady(g)) {
		x.Version, x.Image = u.To, u.Image
		if g.Spec.Version == u.To {
			x.Image = g.Spec.Image // another one would restart it
		}
	}
	return s.Apply(ctx, s.DB, sides.Green(s.DB, x))
}

// startSides makes the Job of some work, with what its Pod mounts. One that has ended without success is made anew.
func (s *bluegreenTopic) startSides(ctx context.Context, w sidesWork, work protocol.SidesWork) error {
	x := s.sidesOf(work, w.green)
	if job := s.Job(x.JobName(s.DB)); job != nil {
		if jobs.Of(job, nil).EndedBefore(s.Now.Add(-bluegreen.PutOff)) {
			return s.Jobs().Remove(ctx, job)
		}
		return nil
	}
	green, err := s.all.configOfGreen(ctx, w.green)
	if err != nil {
		return err
	}
	settings := sides.Settings(s.Config, s.Upgrade, green)
	config, err := sides.ConfigMap(s.DB, settings)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{
		config, sides.Policy(s.DB, s.Settings), sides.Job(s.DB, s.Settings, x),
	} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	return nil
}

// handOver tells the Pod that waits to begin, when no client is in any more.
func (s *bluegreenTopic) handOver(ctx context.Context, w sidesWork) error {
	if !w.view.Closed || !w.change.waits {
		return nil
	}
	begin := protocol.UpgradeBegin{ID: s.Upgrade.ID}
	if err := s.Pods.Begin(ctx, naming.IdentitySides, w.change.at, s.Config, begin); err != nil {
		log.FromContext(ctx).Info("the Pod that hands over could not be told to begin; it is told again",
			"reason", err.Error())
	}
	return nil
}

// forgetAsked removes the request for an upgrade that is done, or was put off too often.
func (s *bluegreenTopic) forgetAsked(ctx context.Context) error {
	if x := s.Upgrade.Sides; x.Serves == v1.SideBlue && x.Tried < bluegreen.Tries {
		return nil
	}
	return s.Settle(ctx, world.RequestUpdate)
}

// cancelSides removes all that there is of the links on blue, and then green.
func (s *bluegreenTopic) cancelSides(ctx context.Context, w sidesWork) error {
	if x := s.DB.Status.Upgrade; x == nil || x.Sides == nil ||
		x.Sides.Step != v1.SidesCancelling && x.Sides.Step != v1.SidesComingHome {
		return nil // that is not on record yet
	}
	cancel := s.sidesRun(ctx, s.sidesOf(protocol.SidesCancel, w.green))
	if !cancel.Done && s.linked(&w) {
		if s.othersWork(s.Job(s.sidesOf(protocol.SidesCancel, w.green).JobName(s.DB))) {
			return nil // what they make now would stay
		}
		return s.startSides(ctx, w, protocol.SidesCancel)
	}
	return s.all.deleteGreen(ctx, w.green)
}

// othersWork says that a Pod of another Job than this one, nil for none, still works on the sides.
func (s *bluegreenTopic) othersWork(own *batchv1.Job) bool {
	return slices.ContainsFunc(s.Seen.SidesPods, func(p corev1.Pod) bool {
		return !pods.Ended(&p) && (own == nil || !metav1.IsControlledBy(&p, own))
	})
}

// deleteGreen deletes the second side, whose data nobody needs any more: it does not serve.
func (s *greenTopic) deleteGreen(ctx context.Context, green *v1.SampleDB) error {
	if green == nil || !world.Ours(green, s.DB) || green.DeletionTimestamp != nil {
		return nil
	}
	if green.Spec.DeletionPolicy != v1.DeletionDelete {
		changed := green.DeepCopy()
		changed.Spec.DeletionPolicy = v1.DeletionDelete
		if err := s.Client.Patch(ctx, changed, client.MergeFrom(green)); err != nil {
			return fmt.Errorf("have SampleDB %s leave nothing: %w", green.Name, err)
		}
	}
	if err := s.bequeath(ctx, green); err != nil {
		return err
	}
	err := s.Client.Delete(ctx, green, client.Preconditions{UID: &green.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete SampleDB %s: %w", green.Name, err)
	}
	return nil
}

// bequeath has green's archive, and the record of its backups, go with it. All that was written on green is in blue's
// archive too, because blue has followed it.
func (s *greenTopic) bequeath(ctx context.Context, green *v1.SampleDB) error {
	owned, err := index.Backups(ctx, s.Client, green.Namespace, green.Name)
	if err != nil {
		return err
	}
	var objects []client.Object
	for i := range owned {
		objects = append(objects, &owned[i])
	}
	claim, err := world.Find(ctx, s.Client, s.DB, naming.Archive(green.Name), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	if claim != nil {
		objects = append(objects, claim)
	}
	owner := desired.Owner(green)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	for _, object := range objects {
		changed, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			continue // it is one
		}
		changed.SetOwnerReferences([]metav1.OwnerReference{owner})
		err := s.Client.Patch(ctx, changed, client.MergeFrom(object))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("have %s go with %s: %w", object.GetName(), green.Name, err)
		}
	}
	return nil
}

// removeSides removes what is left when a blue/green upgrade is over.
func (s *bluegreenTopic) removeSides(ctx context.Context) error {
	err := s.Settle(ctx, world.RequestUpdate, world.RequestUpgradeBack, world.RequestAcceptUpgrade)
	if err != nil {
		return err
	}
	if err := s.keepSidesJobs(ctx, sidesWork{}); err != nil {
		return err
	}
	if err := s.all.removeGreenCertificate(ctx); err != nil {
		return err
	}
	return s.inPlace.EndUpgrade(ctx)
}

// keepSidesJobs removes the Jobs but those of the work that is needed now.
func (s *bluegreenTopic) keepSidesJobs(ctx context.Context, w sidesWork) error {
	return s.RemoveJobs(ctx, func(job *batchv1.Job) bool {
		return job.Labels[naming.LabelComponent] == naming.ComponentSides && !w.needs(s.DB, job.Name)
	})
}

// sideClosed is the condition of a second side: whether it lets no client in.
func (s *bluegreenTopic) sideClosed() world.Verdict {
	if !s.Asks(world.RequestSide) {
		return world.Verdict{}
	}
	switch {
	case s.Config.Closed && s.AllClosed():
		return world.Yes(v1.ReasonSideClosed, "no client is let in, and none is there")
	case !s.Config.Closed && s.blueOpen():
		return world.No(v1.ReasonSideOpen, s.Primary()+" lets clients in")
	}
	return world.Unknown("not every instance has said whether it lets clients in")
}
