package versions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// pullPatience is how long a node may fail to pull an image before that is taken for a failure: a registry may be away
// for a moment.
const pullPatience = 2 * time.Minute

// ApplyUpdate does the next step of an update to a newer minor version (docs/upgradesteps.md). That the target is on
// record in the status is what has the instances replaced: by the same rules as any change of the spec.
func (s *imageTopic) ApplyUpdate(ctx context.Context) error {
	if s.Starting() || s.Image == nil {
		return nil
	}
	if s.Upgrading() || s.Upgrade.HasSides() || s.HoldsWork() {
		s.forgetUpdate()
		return nil
	}
	permission, err := s.MinorPermission()
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	pulls := s.nodes.Of(func(version string) bool { return s.Update != nil && version == s.Update.To })
	situation := s.situation(permission, pulls)
	d := upgrade.Decide(situation)
	s.UpdateNext = d.At
	s.noteUpdate(d, pulls, situation.Missed)
	if d.Why == upgrade.WhyPulling {
		return s.nodes.Start(ctx, d.Target.Image, desired.Major(s.DB), pulls)
	}
	if err := s.nodes.End(ctx); err != nil {
		return err
	}
	return s.tellUpdate(ctx, d)
}

// forgetUpdate takes back what was announced and does not come. A database that is stopped may run again by then.
func (s *imageTopic) forgetUpdate() {
	u := s.Update
	ahead := s.HoldsWork() && u != nil && u.Begins != nil && s.Now.Before(u.Begins.Time)
	if u != nil && u.Step != v1.UpdateReplacing && !ahead {
		s.Update = nil
	}
}

// tellUpdate does what a step of an update does besides the status: it ends a request, and tells.
func (s *imageTopic) tellUpdate(ctx context.Context, d upgrade.Decision) error {
	switch d.Step {
	case upgrade.StepAdopt:
		s.Image.Runs = d.Target.Image
	case upgrade.StepTake:
		former := cmp.Or(s.Image.Runs, "several images")
		s.Image.Runs = d.Target.Image
		s.AddEvent(world.EventUpdating, fmt.Sprintf("from %s (%s) to %s (%s)",
			s.Update.From, former, d.Target.Version, d.Target.Image))
	case upgrade.StepDone:
		s.AddEvent(world.EventUpdated, fmt.Sprintf("all instances run %s, %s", d.Target.Version, d.Target.Image))
	case upgrade.StepFail:
		s.AddWarning(world.EventUpdateFailed, d.Says)
	case upgrade.StepRefuse:
		s.AddWarning(world.EventUpdateRefused, d.Says)
	case upgrade.StepReplace, upgrade.StepNone, upgrade.StepWait, upgrade.StepPull:
	}
	switch d.Step {
	case upgrade.StepReplace, upgrade.StepDone, upgrade.StepFail, upgrade.StepRefuse:
		return s.Settle(ctx, world.RequestUpdate)
	default: // the request is still needed
		return nil
	}
}

// situation is what a decision about an update is made of.
func (s *imageTopic) situation(permission upgrade.Permission, pulls []NodePull) upgrade.Situation {
	out := upgrade.Situation{
		View: s.versions(), Permission: permission, Runs: s.Image.Runs, Looking: s.lookStale(),
		Ready: s.others.Readiness().Status == metav1.ConditionTrue, Busy: s.BusyForStop(),
	}
	out.Libraries, out.Indexes, out.Unsaid = s.all.sortingChange()
	if u := s.Update; u != nil && u.Begins != nil {
		out.Announced, out.Awaited, out.Missed = u.Begins.Time, u.To, missedHour(*u, permission, s.Now)
	}
	out.Pull, out.Pulled, out.Trouble = PulledSoFar(pulls)
	switch u := s.Update; {
	case u == nil:
	case u.Step == v1.UpdateFailed:
		out.Failed, out.FailedAt, out.Failure = u.Image, u.Since.Time, u.Failure
	case u.Step == v1.UpdateReplacing && u.Image == s.Image.Runs: // else spec.image was changed meanwhile
		out.Replacing = &upgrade.Target{Image: u.Image, Digest: desired.Digest(u.Image), Version: u.To}
		out.Left = !s.TemplateObserved() || slices.ContainsFunc(s.Fleet().Instances, func(i world.Instance) bool {
			return len(i.Outdated) > 0 || !i.Ready
		})
	}
	return out
}

// missedHour is why what was announced did not begin in the last quiet hour, "" where none was missed: in the one that
// is over since what was said in it last, or in one before that, as long as the next is not over. An hour that is none
// of the quiet ones is of a window that somebody had chosen.
func missedHour(u v1.UpdateStatus, p upgrade.Permission, now time.Time) string {
	if !p.QuietAt(u.Begins.Time) {
		return ""
	}
	over := u.Begins.Add(p.Window.Length)
	if now.Before(over) {
		if upgrade.IsMissed(u.Failure) {
			return u.Failure
		}
		return "" // why a node could not get the image
	}
	if u.Since == nil || u.Since.Time.Before(u.Begins.Time) || !u.Since.Time.Before(over) {
		return upgrade.Missed(u.Begins.Time, upgrade.WhyUnknown, "") // what it says was not said in that hour
	}
	said := u.Message
	if u.Step == v1.UpdateFailed {
		said = u.Failure
	}
	return upgrade.Missed(u.Begins.Time, upgrade.Why(u.Reason), said)
}

// unsaidPatience is how long what was announced stays though the primary does not say which indexes it has: a new one
// says so within minutes, and one whose agent is of an earlier release never does.
const unsaidPatience = 5 * time.Minute

// noteUpdate says in the status how far an update is. What waits only because there is nothing newer is none.
func (s *imageTopic) noteUpdate(d upgrade.Decision, pulls []NodePull, missed string) {
	before := cmp.Or(s.Update, &v1.UpdateStatus{})
	unsaid := s.UnsaidSorting.Note(s.DB.UID, "", d.Why != upgrade.WhySortingUnsaid, s.Now) < unsaidPatience &&
		d.Why == upgrade.WhySortingUnsaid && before.To == d.Target.Version
	if before.Begins != nil && (d.Why == upgrade.WhyUnknown || unsaid && s.Now.Before(before.Begins.Time)) {
		return // what an instance runs, or sorts by, is not known for a moment: what was announced stays
	}
	awaited := d.Target.Image != "" || d.Step == upgrade.StepWait && s.Asks(world.RequestUpdate)
	if !awaited || d.Step == upgrade.StepAdopt || d.Step == upgrade.StepDone {
		s.Update = nil
		return
	}
	s.Update = &v1.UpdateStatus{
		Step: cmp.Or(updateSteps[d.Why], v1.UpdateWaiting), Reason: string(d.Why), Message: d.Says,
		Image: d.Target.Image, To: d.Target.Version,
		From: s.versionsRun(), Left: s.updateLeft(d, pulls), Since: s.Stamp(),
	}
	if d.Step == upgrade.StepReplace {
		s.Update.From = before.From
	}
	s.keepOfUpdate(*before, d)
	if d.Step == upgrade.StepFail {
		s.Update.Failure = d.Says
	}
	if d.Why == upgrade.WhyOutsideWindow {
		s.announceUpdate(*before, d, missed)
	}
}

// keepOfUpdate keeps what the status said before: of the same image since when a step lasts, and why it could not be
// got the last time; of the same version when it was to begin, while something is in the way. What waits as before when
// its time comes waits anew: so it is known afterwards that it was said then.
func (s *imageTopic) keepOfUpdate(before v1.UpdateStatus, d upgrade.Decision) {
	image, step := before.Image == s.Update.Image, before.Step == s.Update.Step
	begins := before.Begins
	anew := s.Update.Step == v1.UpdateWaiting && begins != nil && before.Since != nil && before.Since.Before(begins) &&
		!s.Now.Before(begins.Time)
	if image && step && d.Step != upgrade.StepFail && !anew {
		s.Update.Since = before.Since
	}
	if image && (step || d.Step == upgrade.StepWait) {
		s.Update.Failure = before.Failure
	}
	begun := d.Step == upgrade.StepReplace || d.Step == upgrade.StepTake
	if before.To == s.Update.To && !begun && d.Why != upgrade.WhyNotAsked {
		s.Update.Begins = before.Begins
	}
}

// announceUpdate says when an update begins by itself, once, and keeps why it did not in the last quiet hour.
func (s *imageTopic) announceUpdate(before v1.UpdateStatus, d upgrade.Decision, missed string) {
	if before.To == s.Update.To && missed != "" {
		s.Update.Failure = missed
	}
	s.Update.Begins = &metav1.Time{Time: d.At}
	if before.To != s.Update.To || !s.Update.Begins.Equal(before.Begins) {
		s.AddEvent(world.EventUpdateAhead, fmt.Sprintf("from %s to %s. %s", s.Update.From, s.Update.To, d.Says))
	}
}

// updateSteps are the steps of the status; all others wait.
var updateSteps = map[upgrade.Why]string{
	upgrade.WhyReplacing: v1.UpdateReplacing, upgrade.WhyPulling: v1.UpdatePulling,
	upgrade.WhyPullFailed: v1.UpdateFailed,
}

// versionsRun are the versions that the instances run, each once.
func (s *imageTopic) versionsRun() string {
	var all []string
	for _, i := range s.others.InstanceStatuses() {
		if i.Version != "" && !slices.Contains(all, i.Version) {
			all = append(all, i.Version)
		}
	}
	return strings.Join(all, ", ")
}

// updateLeft is what is still to be done until all instances run a target: the steps in their order.
func (s *imageTopic) updateLeft(d upgrade.Decision, pulls []NodePull) (left []string) {
	if d.Target.Image == "" {
		return nil
	}
	replacing := d.Step == upgrade.StepTake || d.Step == upgrade.StepReplace
	for _, p := range pulls {
		has := p.Image == d.Target.Image && p.State == upgrade.PullDone
		if !replacing && !has {
			left = append(left, "pull the image on "+p.Node)
		}
	}
	for _, i := range slices.SortedStableFunc(slices.Values(s.Fleet().Instances), world.InOrder) {
		switch {
		case i.Ready && s.digestOf(i.Name) == d.Target.Digest:
		case i.Primary && s.Instances() > 1:
			left = append(left, fmt.Sprintf("replace %s, which hands over first", i.Name))
		default:
			left = append(left, "replace "+i.Name)
		}
	}
	return left
}

// digestOf is the digest of the image that an instance runs, "" where that is not known.
func (s *imageTopic) digestOf(name string) string {
	ordinal, _ := naming.Ordinal(name)
	pod := s.Seen.Pods[ordinal]
	if pod == nil {
		return ""
	}
	return desired.Digest(desired.ImageID(pod, naming.ContainerPostgreSQL))
}
