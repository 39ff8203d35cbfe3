package bluegreen

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	inplace "toban.dev/internal/operator/sampledb/major"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// bluegreenTopic upgrades to another major version by a second side.
type bluegreenTopic struct {
	base
	// turns says that the next step of a change of sides is due at once.
	turns bool
}

// sidesWork is how far everything is that a blue/green upgrade needs.
type sidesWork struct {
	green *v1.SampleDB
	view  bluegreen.SidesView
	// jobs are those of the work that is needed now: all others are removed.
	jobs map[protocol.SidesWork]sides.Step
	// InPlace is the upgrade of blue, on the way home.
	inPlace inplace.Work
	change  sidesRun
}

// sidesRun is a Job of a blue/green upgrade.
type sidesRun struct {
	major.Work
	result *protocol.SidesResult
	// waits says that its Pod waits to be told to begin; at is its address.
	waits bool
	at    string
}

// wantsSides says that the spec wants the upgrade by a second side.
func wantsSides(db *v1.SampleDB) bool {
	return desired.Upgrades(db) && desired.BlueGreen(db)
}

// beginsSides says that an upgrade of which nothing is done yet is to be done by a second side.
func (s *bluegreenTopic) beginsSides() bool {
	return s.Upgrade.Sides == nil && wantsSides(s.DB) && !s.Upgrade.Closed() && s.Config.Upgraded != s.Upgrade.ID
}

// applyUpgrade does the next step of a blue/green upgrade (docs/sides.md).
func (s *bluegreenTopic) applyUpgrade(ctx context.Context) error {
	u := s.Upgrade
	if u == nil || u.Sides == nil && !s.beginsSides() {
		return nil
	}
	if u.Sides == nil {
		u.Sides = &v1.SidesStatus{Step: v1.UpgradeWaiting, Since: s.Stamp(), Serves: v1.SideBlue}
	}
	if u.Sides.Step == v1.UpgradeUpgraded {
		return s.inPlace.KeepFormer(ctx)
	}
	w, err := s.sidesWork(ctx)
	if err != nil {
		return err
	}
	d := bluegreen.DecideSides(w.view)
	s.noteSides(w, d)
	if d.Phase == major.PhaseFailed && !wantsSides(s.DB) { // it was given up, or is to be done in place
		if err := s.removeSides(ctx); err != nil {
			return err
		}
		s.Upgrade, s.Upgraded = nil, world.Verdict{}
		return nil
	}
	return s.actOnSides(ctx, d, w)
}

// sidesWork looks at all that the decision is made of.
func (s *bluegreenTopic) sidesWork(ctx context.Context) (sidesWork, error) {
	w := sidesWork{jobs: map[protocol.SidesWork]sides.Step{}}
	var err error
	if w.green, err = world.Find(ctx, s.Client, s.DB, naming.Green(s.DB.Name), &v1.SampleDB{}); err != nil {
		return w, err
	}
	if w.view, err = s.sidesView(); err != nil {
		return w, &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	v := &w.view
	v.Open, v.Closed = s.blueOpen(), s.AllClosed()
	if closed, known := greenClosed(w.green); known && s.Upgrade.Sides.Serves == v1.SideGreen {
		v.Open, v.Closed, v.Unready = !closed && isReady(w.green), closed, greenUnready(w.green, closed)
		if v.Phase == bluegreen.PhaseChangingBack {
			v.Closed = closed && closedSince(w.green, v.Since) && s.Primary() != ""
		}
	} else if s.Upgrade.Sides.Serves == v1.SideGreen {
		v.Open, v.Closed = false, false
	}
	v.Check, v.Backup = s.sidesCheck(), s.inPlace.UpgradeBackup()
	v.Copy, v.Unshown = s.sidesCopy(w.green), greenUnshown(w.green)
	s.sidesRuns(ctx, &w)
	s.nameReaders(v)
	if (w.green == nil || w.green.DeletionTimestamp != nil) && (v.Follow.Started || v.Serves == bluegreen.Green) {
		v.Gone = w.green == nil && v.Serves == bluegreen.Green
		v.Broken = fmt.Sprintf("the SampleDB %s was deleted", naming.Green(s.DB.Name))
	}
	v.Removed = s.sidesRemoved(ctx, &w)
	return w, nil
}

// nameReaders says in a pause which readers it waits for.
func (s *bluegreenTopic) nameReaders(v *bluegreen.SidesView) {
	if open := s.OpenReaders(); pausing(string(v.Phase)) && len(open) > 0 {
		v.Hand.Says = strings.Join(open, ", ") + " may let clients in still"
	}
}

// sidesView is what is known without a Job of it.
func (s *bluegreenTopic) sidesView() (bluegreen.SidesView, error) {
	u, x := s.Upgrade, s.Upgrade.Sides
	permission, err := s.Permission(world.RequestUpdate)
	if err != nil {
		return bluegreen.SidesView{}, err
	}
	view := bluegreen.SidesView{
		Now: s.Now, From: int(u.From), To: int(u.To), Phase: major.Phase(x.Step), Since: x.Since.Time,
		Tried: int(x.Tried), Wanted: wantsSides(s.DB) && s.DB.Spec.Version == u.To, Failure: u.Failure,
		Repeat: !s.inPlace.TriedUpgrade(), Ready: s.rest.Unready() == nil, Busy: s.busyBeforeSides(),
		Window: permission.Window, Asked: permission.Asked && !permission.InWindow,
		Serves:   bluegreen.Colour(x.Serves),
		Accepted: u.Accepted || s.Asks(world.RequestAcceptUpgrade),
		Back:     s.Asks(world.RequestUpgradeBack) || s.DB.Spec.Version < u.To,
	}
	if exact, err := time.Parse(time.RFC3339, u.ClosedAt); err == nil && pausing(x.Step) {
		view.Since = exact
	}
	if u.CompletedAt != nil && x.Serves == v1.SideGreen {
		view.Until = u.CompletedAt.Add(upgrades.KeepFormer(s.DB))
	}
	return view, nil
}

// busyBeforeSides is what else is under way that sides do not begin beside, "" for nothing.
func (s *bluegreenTopic) busyBeforeSides() string {
	if s.Upgrade.Sides.Position == "" && (s.Rotates() || s.ChangesAuthority()) {
		return "a password or an authority is being rotated"
	}
	return s.inPlace.BusyBesides(s.Upgrade)
}

// pausing says that no client is let in during a step.
func pausing(step string) bool { return step == v1.SidesChanging || step == v1.SidesChangingBack }

// blueOpen says that blue's primary takes the writes of clients.
func (s *bluegreenTopic) blueOpen() bool {
	answer, known := s.Seen.Answers[s.Primary()]
	return known && !s.Config.Closed && answer.ConfigRevision == s.Config.Revision && !answer.Closed
}

// greenClosed says whether green lets no client in and none is there, by its own word; known is false where it has not
// said so.
func greenClosed(green *v1.SampleDB) (closed, known bool) {
	if green == nil {
		return false, false
	}
	c := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionSideClosed)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return false, false
	}
	return c.Status == metav1.ConditionTrue, true
}

// closedSince says that green closed after a moment: what it said of a pause before does not count.
func closedSince(green *v1.SampleDB, since time.Time) bool {
	c := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionSideClosed)
	return c != nil && !c.LastTransitionTime.Time.Before(since.Truncate(time.Second))
}

// greenUnready is why green, which lets clients in, is not Ready, "" where it is.
func greenUnready(green *v1.SampleDB, closed bool) string {
	if closed || isReady(green) {
		return ""
	}
	why := fmt.Sprintf("the SampleDB %s is not Ready", green.Name)
	if c := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionReady); c != nil && c.Message != "" {
		why += ", because " + c.Message
	}
	return why
}

func isReady(db *v1.SampleDB) bool {
	return meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionReady)
}

// sidesCheck is how far the look is whether the databases can be upgraded at all, and by this strategy.
func (s *bluegreenTopic) sidesCheck() major.Work {
	if reason, sentence := bluegreen.StrategyRefusal(sides.StrategyFacts(s.DB)); reason != "" {
		return major.Work{Failed: sentence}
	}
	if s.Upgrade.Sides.Position != "" {
		return major.Work{Done: true}
	}
	return s.inPlace.UpgradeCheck(s.inPlace.UpgradeOf())
}

// needs says that a Job of a name is one of those of the work that is needed now.
func (w *sidesWork) needs(db *v1.SampleDB, name string) bool {
	for _, x := range w.jobs {
		if x.JobName(db) == name {
			return true
		}
	}
	return false
}

// otherVersionAsked says that the spec wants another version than blue is to be upgraded to, before that has begun.
func (s *bluegreenTopic) otherVersionAsked() bool {
	u := s.Upgrade
	return s.DB.Spec.Version != u.To && !u.Closed() && s.Config.Upgraded != u.ID
}

// sidesCopy is how far green is: restored, then upgraded.
func (s *bluegreenTopic) sidesCopy(green *v1.SampleDB) major.Work {
	if green == nil {
		return major.Work{}
	}
	out := major.Work{Started: true}
	for _, kind := range []string{v1.ConditionRestored, v1.ConditionUpgraded} {
		c := meta.FindStatusCondition(green.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1.ReasonUpgradeFailed {
			out.Failed = c.Message
		}
	}
	ready := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionReady)
	switch {
	case !world.Ours(green, s.DB):
		out.Failed = fmt.Sprintf("there is a SampleDB %s already, which is not this upgrade's: rename or delete it",
			green.Name)
	case green.Status.Major == s.Upgrade.To && isReady(green):
		out.Done = true
	case ready != nil:
		out.Says = ready.Message
	}
	return out
}

// sidesRuns are the Jobs of the work from which side to which. On the way home that of comparing and handing over is
// another one than before.
func (s *bluegreenTopic) sidesRuns(ctx context.Context, w *sidesWork) {
	v := &w.view
	look := func(work protocol.SidesWork) sidesRun {
		x := s.sidesOf(work, w.green)
		w.jobs[work] = x
		return s.sidesRun(ctx, x)
	}
	note := func(into *major.Work, work protocol.SidesWork) {
		run := look(work)
		*into = run.Work
		if run.result != nil && run.result.Broken != "" {
			v.Broken = run.result.Broken
		}
	}
	switch {
	case v.Phase == major.PhaseFailed || v.Phase == bluegreen.PhaseCancelling:
		return
	case v.Serves == bluegreen.Green || v.Phase == bluegreen.PhaseChangingBack || v.Phase == bluegreen.PhaseComingHome:
		note(&v.Settle, protocol.SidesSettle)
		if s.comesHome() {
			note(&v.Leave, protocol.SidesLeave)
			w.inPlace = s.homeWork(ctx, v)
			note(&v.Return, protocol.SidesReturn)
		}
	default:
		publish := look(protocol.SidesPublish)
		v.Publish = s.publishedSide(publish)
	}
	note(&v.Follow, protocol.SidesFollow)
	note(&v.Compare, protocol.SidesCompare)
	if s.comesHome() { // there is no way back any more
		v.Prepare = major.Work{Done: true}
	} else {
		note(&v.Prepare, protocol.SidesPrepare)
	}
	w.change = look(protocol.SidesChange)
	v.Hand, v.Waits = w.change.Work, w.change.waits
}

// comesHome says that the upgrade is accepted, by somebody or by its time.
func (s *bluegreenTopic) comesHome() bool { return s.Upgrade.Accepted }

// publishedSide is how far the serving side is: the archive must have the WAL up to behind the position.
func (s *bluegreenTopic) publishedSide(run sidesRun) major.Work {
	x, out := s.Upgrade.Sides, run.Work
	if run.result != nil && run.result.Done && x.Position == "" {
		x.Position = run.result.Position
	}
	out.Done = false
	position, err := wal.ParseLSN(x.Position)
	if err != nil {
		return out
	}
	out.Says = "the archive does not have the WAL up to there yet"
	if a := s.Seen.Answers[s.Primary()].Archive; a != nil {
		archived, err := wal.ParseLSN(a.LSN)
		out.Done = err == nil && archived > position
	}
	return out
}

// sidesOf is a Job of this try. A comparison is another one after another primary was elected on either side, and after
// a change that the servers have refused for it (docs/sides.md, invariant 7); a change is another one for each try.
func (s *bluegreenTopic) sidesOf(work protocol.SidesWork, green *v1.SampleDB) sides.Step {
	x := s.Upgrade.Sides
	stage := 0
	switch {
	case s.comesHome() && work != protocol.SidesSettle:
		stage = 2
	case x.Serves == v1.SideGreen:
		stage = 1
	}
	run := []any{x.Run, stage}
	switch work {
	case protocol.SidesCompare, protocol.SidesPrepare: // a new primary may lack the slots of the link back
		run = append(run, s.termOfBlue())
		if green != nil {
			run = append(run, green.Status.Term)
		}
		if x.Anew != "" { // the change that was refused
			run = append(run, x.Anew)
		}
	case protocol.SidesChange:
		run = append(run, x.Tried)
	case protocol.SidesPublish, protocol.SidesFollow, protocol.SidesSettle, protocol.SidesLeave,
		protocol.SidesReturn, protocol.SidesCancel:
	}
	return sides.Step{
		ID: s.Upgrade.ID, Work: work, FromGreen: stage > 0 && work != protocol.SidesCancel, Run: desired.Hash(run),
	}
}

// termOfBlue is the term of blue's primary: the last one that is known, because not known is not another one.
func (s *bluegreenTopic) termOfBlue() int64 {
	if a, known := s.Seen.Answers[s.Primary()]; known {
		return int64(min(a.Term, math.MaxInt64))
	}
	return s.DB.Status.Term
}

// sidesRun is how a Job is, and what its Pod says or has left.
func (s *bluegreenTopic) sidesRun(ctx context.Context, x sides.Step) sidesRun {
	name := x.JobName(s.DB)
	if slices.Contains(s.Upgrade.Sides.Done, name) {
		return sidesRun{Work: major.Work{Started: true, Done: true}}
	}
	job := s.Job(name)
	run := jobs.Of(job, s.Seen.SidesPods)
	result := jobs.Result[protocol.SidesResult](run.Last(naming.ContainerSides))
	out := sidesRun{Work: major.Work{Started: run.State() != jobs.None}, result: result}
	if pod := run.Newest(); run.State() == jobs.Running && pod != nil && !pods.Ended(pod) {
		if p := pods.Ask(ctx, s.Client, s.Pods, naming.IdentitySides, pod); p != nil {
			out.waits, out.at, out.Says = p.Step == protocol.StepAwaitsBegin, pod.Status.PodIP, p.Step
			if p.Sides != nil {
				out.result = p.Sides
			}
		} else if t := pods.TroubleOf(pod); t != nil {
			out.Says = t.Message
		}
	}
	out.judge(run)
	if out.Done && x.Work != protocol.SidesChange { // its Pod, which has the result, may go any day
		s.Upgrade.Sides.Done = append(s.Upgrade.Sides.Done, name)
	}
	return out
}

// refused says that its Pod has refused, for this reason among others.
func (out *sidesRun) refused(reason string) bool {
	return out.result != nil && slices.ContainsFunc(out.result.Refusals, func(f protocol.UpgradeFinding) bool {
		return f.Reason == reason
	})
}

// judge says by the result of a Job how far its work is.
func (out *sidesRun) judge(run jobs.Run) {
	switch {
	case out.result == nil && run.State() < jobs.Complete:
	case out.result == nil && run.State() == jobs.Complete: // of a Pod that is gone, or not seen yet: it is done anew
		out.Says = "it is not known what has come of it"
	case out.result == nil:
		out.Failed = inplace.WhyEnded(run, "")
	case len(out.result.Refusals) > 0:
		out.Failed = strings.Join(inplace.Findings(out.result.Refusals), "; ")
	case len(out.result.Differences) > 0:
		out.Failed = "rows differ: " + strings.Join(out.result.Differences, "; ")
	case out.result.Broken != "":
		out.Failed = out.result.Broken
	case out.result.Done:
		out.Done = true
	case run.State() > jobs.Complete:
		out.Failed = inplace.WhyEnded(run, out.result.Error)
	default:
		out.Says = cmp.Or(out.result.Error, out.Says)
	}
}

// homeWork is how far the upgrade of blue's own data is, while green serves.
func (s *bluegreenTopic) homeWork(ctx context.Context, v *bluegreen.SidesView) inplace.Work {
	if s.Config.Upgraded == s.Upgrade.ID && !s.Upgrade.Closed() {
		v.InPlace = major.Work{Done: true}
		return inplace.Work{}
	}
	v.InPlace = major.Work{Started: s.Upgrade.Closed(), Says: s.Upgrade.Step}
	if s.otherVersionAsked() {
		v.InPlace.Failed = fmt.Sprintf("set spec.version to %d, which serves: blue is upgraded to it", s.Upgrade.To)
		return inplace.Work{}
	}
	if s.Upgrade.Step == v1.UpgradeFailed {
		v.InPlace.Failed = s.Upgrade.Failure
	}
	return s.inPlace.UpgradeWork(ctx, s.inPlace.UpgradeOf())
}

// sidesRemoved says whether nothing is left of green, nor of the links on blue.
func (s *bluegreenTopic) sidesRemoved(ctx context.Context, w *sidesWork) major.Work {
	x := s.sidesOf(protocol.SidesCancel, w.green)
	w.jobs[protocol.SidesCancel] = x
	cancel := s.sidesRun(ctx, x)
	switch {
	case !cancel.Done && s.linked(w):
		return cancel.Work
	case w.green != nil && world.Ours(w.green, s.DB):
		return major.Work{Says: fmt.Sprintf("the SampleDB %s goes", w.green.Name)}
	}
	return major.Work{Done: true}
}

// linked says that there may be something of a link on blue.
func (s *bluegreenTopic) linked(w *sidesWork) bool {
	publish := s.sidesOf(protocol.SidesPublish, w.green)
	x := s.Upgrade.Sides
	return x.Step == v1.SidesCancelling || x.Position != "" || x.Serves == v1.SideGreen ||
		s.Job(publish.JobName(s.DB)) != nil
}
