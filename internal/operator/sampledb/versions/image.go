package versions

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// imageTopic looks into the image, and updates to a newer minor version.
type imageTopic struct {
	base
	nodes      Pulls
	UpdateNext time.Time
}

// When the image is looked into (docs/upgradesteps.md).
const (
	// firstLook is how long after the first start: that has enough to do.
	firstLook = 10 * time.Minute
	// nextLook is how long after a look, nextTry after one that failed. Each is longer by up to lookSpread, so that a
	// thousand are not looked into at once.
	nextLook   = 24 * time.Hour
	nextTry    = time.Hour
	lookSpread = time.Hour
)

// look is what a decision about a look into the image is made of.
type look struct {
	// due says that it is time for one, or that one is asked for.
	due bool
	// registry and node are how the Jobs are that take the image from its registry, and as a node has it.
	registry, node lookJob
}

// lookJob is one of the Jobs: how it is, what it has left, and why its Pod does not run.
type lookJob struct {
	state   jobs.State
	result  *protocol.ImageResult
	trouble *pods.Trouble
	end     string
}

// lookStep is the whole of what a reconcile does about it.
type lookStep string

const (
	lookNone        lookStep = "none"
	lookAskRegistry lookStep = "ask the registry"
	lookAskNode     lookStep = "ask a node"
	lookTake        lookStep = "take the result"
	lookGiveUp      lookStep = "give up"
)

// next is what to do. Where the registry can't be reached, a node may have the image, from which the instances run.
func (l look) next() lookStep {
	from := l.last()
	switch {
	case from.state == jobs.None && l.due:
		return lookAskRegistry
	case from.state == jobs.None || from.state == jobs.Ending:
		return lookNone
	case from.state == jobs.Complete && from.result != nil && from.result.Version != "":
		return lookTake
	case from.notPulled() && l.node.state == jobs.None:
		return lookAskNode
	case from.notPulled() || from.state != jobs.Running:
		return lookGiveUp
	}
	return lookNone
}

// last is the Job that was asked last: a node is only asked where the registry could not be.
func (l look) last() lookJob {
	if l.node.state != jobs.None {
		return l.node
	}
	return l.registry
}

// notPulled says that the Pod does not get its image.
func (j lookJob) notPulled() bool { return j.trouble != nil && j.trouble.Cause == pods.Image }

// problem is why a look has failed.
func (j lookJob) problem() string {
	message := ""
	if j.result != nil {
		message = j.result.Error
	}
	if j.trouble != nil {
		message = cmp.Or(message, j.trouble.Message)
	}
	return cmp.Or(message, j.end, "the Pod has left no result")
}

// ApplyImage does the next step of a look into the image.
func (s *imageTopic) ApplyImage(ctx context.Context) error {
	image := desired.NamedImage(s.DB, s.Settings)
	if s.Image == nil || s.Image.Name != image {
		s.Image = &v1.ImageStatus{Name: image}
		if desired.FixedImage(image) {
			s.Image.Runs = image
		}
	}
	registry, node := s.Job(naming.ImageJob(s.DB.Name)), s.Job(naming.NodeImageJob(s.DB.Name))
	l := look{due: s.lookDue(), registry: s.nodes.lookJob(registry), node: s.nodes.lookJob(node)}
	switch l.next() {
	case lookAskRegistry:
		return s.Jobs().Create(ctx, desired.ImageJob(s.DB, s.Settings, false))
	case lookAskNode:
		return s.Jobs().Create(ctx, desired.ImageJob(s.DB, s.Settings, true))
	case lookTake:
		s.takeImage(l)
	case lookGiveUp:
		s.Image.LookedAt, s.Image.Problem = s.Stamp(), l.last().problem()
	case lookNone:
		return nil
	}
	return s.endLook(ctx, registry, node)
}

// endLook takes the request and the Jobs away.
func (s *imageTopic) endLook(ctx context.Context, ended ...*batchv1.Job) error {
	if err := s.Settle(ctx, world.RequestLookForUpdates); err != nil {
		return err
	}
	for _, job := range ended {
		if job == nil {
			continue
		}
		if err := s.Jobs().Remove(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// takeImage takes over what was found in the image.
func (s *imageTopic) takeImage(l look) {
	from, job, registry := l.last(), naming.ImageJob(s.DB.Name), ""
	if l.node.state != jobs.None {
		job, registry = naming.NodeImageJob(s.DB.Name), l.registry.problem()
	}
	s.Image = &v1.ImageStatus{
		Name: s.Image.Name, Runs: s.Image.Runs, Reference: s.nodes.Pulled(job), Version: from.result.Version,
		CLibrary: from.result.CLibrary, ICU: from.result.ICU, Extensions: from.result.Extensions, LookedAt: s.Stamp(),
		Registry: registry, RunsCLibrary: s.Image.RunsCLibrary, RunsICU: s.Image.RunsICU,
	}
}

// lookDue says that it is time to look into the image: asked for, another image than before, or a day later. A fixed
// image is looked into once.
func (s *imageTopic) lookDue() bool {
	if s.Starting() || s.Primary() == "" {
		return false
	}
	if s.Asks(world.RequestLookForUpdates) || s.Asks(world.RequestUpdate) && s.lookStale() {
		return true
	}
	spread := s.spread(lookSpread)
	switch {
	case s.Image.LookedAt == nil:
		return !s.Now.Before(s.InitializedAt.Add(firstLook))
	case s.Image.Problem != "":
		return !s.Now.Before(s.Image.LookedAt.Add(nextTry + spread))
	case desired.FixedImage(s.Image.Name):
		return false
	}
	return !s.Now.Before(s.Image.LookedAt.Add(nextLook + spread))
}

// lookStale says that a request for an update has the image looked into first: not where that was done a moment ago.
func (s *imageTopic) lookStale() bool {
	return s.Image.LookedAt == nil || s.Now.Sub(s.Image.LookedAt.Time) >= firstLook
}

// spread is a part of a time, always the same for a SampleDB and another for each.
func (s *imageTopic) spread(most time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s.DB.UID)) // never fails
	return most * time.Duration(hash.Sum32()%1000) / 1000
}

// versionReasons are the reasons of the condition, by those of the judgement.
var versionReasons = map[upgrade.Reason]string{
	upgrade.Current: v1.ReasonUpToDate, upgrade.MinorOutdated: v1.ReasonMinorOutdated,
	upgrade.InstancesDiffer: v1.ReasonInstancesDiffer, upgrade.EndOfLife: v1.ReasonEndOfLife,
	upgrade.EndOfLifeNear: v1.ReasonEndOfLifeNear, upgrade.NotLooked: v1.ReasonNotLooked,
	upgrade.ImageNotRead: v1.ReasonImageNotRead, upgrade.Unknown: v1.ReasonUnknown,
}

// UpToDate is the condition UpToDate, empty before there is a primary for the first time.
func (s *imageTopic) UpToDate() world.Verdict {
	if s.Starting() || s.Image == nil {
		return world.Verdict{}
	}
	reason, sentence := upgrade.Judge(s.versions())
	switch {
	case reason == upgrade.Current:
		return world.Yes(versionReasons[reason], sentence)
	case reason == upgrade.MinorOutdated:
		return world.No(versionReasons[reason], sentence+s.all.sortingAhead())
	case reason.Known():
		return world.No(versionReasons[reason], sentence)
	}
	return world.Verdict{Status: metav1.ConditionUnknown, Reason: versionReasons[reason], Message: sentence}
}

// versions is what the judgement about versions is made of. What an instance runs that can't be asked is what it ran.
func (s *imageTopic) versions() upgrade.View {
	view := upgrade.View{Now: s.Now, Major: desired.Major(s.DB), Image: upgrade.Image{
		Name: s.Image.Name, Fixed: desired.FixedImage(s.Image.Name), Reference: s.Image.Reference,
		Digest: desired.Digest(s.Image.Reference), Version: s.Image.Version, Problem: s.Image.Problem,
	}}
	if s.Update != nil {
		view.Next = s.Update.Message
	}
	for _, i := range s.others.InstanceStatuses() {
		one := upgrade.Instance{Name: i.Name, Version: i.Version, Digest: i.ImageID}
		if desired.FixedImage(i.ImageID) {
			one.Digest = desired.Digest(i.ImageID)
		}
		if desired.FixedImage(i.ImageID) && desired.SameRepository(i.ImageID, s.Image.Name) {
			one.Image = i.ImageID
		}
		ordinal, _ := naming.Ordinal(i.Name)
		if pod := s.Seen.Pods[ordinal]; pod != nil {
			one.Former = slices.Contains(desired.Outdated(s.DB, s.OperatorSettings, pod), desired.FacetImage)
		}
		view.Instances = append(view.Instances, one)
	}
	return view
}
