package sampledb

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
	"toban.dev/internal/protocol"
)

// imageTopic looks into the image, and updates to a newer minor version.
type imageTopic struct {
	versionsBase
	updateNext time.Time
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

// applyImage does the next step of a look into the image.
func (s *imageTopic) applyImage(ctx context.Context) error {
	image := desired.NamedImage(s.db, s.Settings)
	if s.image == nil || s.image.Name != image {
		s.image = &v1.ImageStatus{Name: image}
		if desired.FixedImage(image) {
			s.image.Runs = image
		}
	}
	registry, node := s.job(naming.ImageJob(s.db.Name)), s.job(naming.NodeImageJob(s.db.Name))
	l := look{due: s.lookDue(), registry: s.lookJob(registry), node: s.lookJob(node)}
	switch l.next() {
	case lookAskRegistry:
		return s.jobs().Create(ctx, desired.ImageJob(s.db, s.Settings, false))
	case lookAskNode:
		return s.jobs().Create(ctx, desired.ImageJob(s.db, s.Settings, true))
	case lookTake:
		s.takeImage(l)
	case lookGiveUp:
		at := metav1.NewTime(s.now).Rfc3339Copy()
		s.image.LookedAt, s.image.Problem = &at, l.last().problem()
	case lookNone:
		return nil
	}
	return s.endLook(ctx, registry, node)
}

// endLook takes the request and the Jobs away.
func (s *imageTopic) endLook(ctx context.Context, ended ...*batchv1.Job) error {
	if err := s.annotate(ctx, map[string]string{naming.AnnotationLookForUpdates: ""}); err != nil {
		return err
	}
	for _, job := range ended {
		if job == nil {
			continue
		}
		if err := s.jobs().Remove(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// takeImage takes over what was found in the image.
func (s *imageTopic) takeImage(l look) {
	from, job, registry := l.last(), naming.ImageJob(s.db.Name), ""
	if l.node.state != jobs.None {
		job, registry = naming.NodeImageJob(s.db.Name), l.registry.problem()
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.image = &v1.ImageStatus{
		Name: s.image.Name, Runs: s.image.Runs, Reference: s.pulled(job), Version: from.result.Version,
		CLibrary: from.result.CLibrary, ICU: from.result.ICU, Extensions: from.result.Extensions, LookedAt: &at,
		Registry: registry, RunsCLibrary: s.image.RunsCLibrary, RunsICU: s.image.RunsICU,
	}
}

// pulled is the image that a Job's Pod has run by its digest, "" where the kubelet gives none that can be pulled. It is
// named by the repository that the Pod's image is of: a node that has the same image from another one may say that.
func (s *imageTopic) pulled(job string) string {
	for _, pod := range s.seen.imagePods {
		id := desired.ImageID(&pod, naming.ContainerImage)
		if pod.Labels[batchv1.JobNameLabel] == job && desired.FixedImage(id) {
			return desired.InRepositoryOf(pod.Spec.Containers[0].Image, id)
		}
	}
	return ""
}

// job is the SampleDB's own Job of a name, nil where there is none.
func (s *upgradeFacts) job(name string) *batchv1.Job {
	i := slices.IndexFunc(s.seen.jobs, func(j batchv1.Job) bool {
		return j.Name == name && metav1.IsControlledBy(&j, s.db)
	})
	if i < 0 {
		return nil
	}
	return &s.seen.jobs[i]
}

func (s *imageTopic) lookJob(job *batchv1.Job) lookJob {
	run := jobs.Of(job, s.seen.imagePods)
	out := lookJob{state: run.State(), end: run.EndMessage()}
	if text := run.Last(naming.ContainerImage); text != "" {
		out.result = jobs.Result[protocol.ImageResult](text)
	}
	if pod := run.Newest(); pod != nil {
		out.trouble = pods.TroubleOf(pod)
	}
	return out
}

// lookDue says that it is time to look into the image: asked for, another image than before, or a day later. A fixed
// image is looked into once.
func (s *imageTopic) lookDue() bool {
	if s.starting() || s.primary() == "" {
		return false
	}
	if s.db.Annotations[naming.AnnotationLookForUpdates] != "" || s.updateAsked() && s.lookStale() {
		return true
	}
	spread := s.spread(lookSpread)
	switch {
	case s.image.LookedAt == nil:
		return !s.now.Before(s.initializedAt.Add(firstLook))
	case s.image.Problem != "":
		return !s.now.Before(s.image.LookedAt.Add(nextTry + spread))
	case desired.FixedImage(s.image.Name):
		return false
	}
	return !s.now.Before(s.image.LookedAt.Add(nextLook + spread))
}

// lookStale says that a request for an update has the image looked into first: not where that was done a moment ago.
func (s *imageTopic) lookStale() bool {
	return s.image.LookedAt == nil || s.now.Sub(s.image.LookedAt.Time) >= firstLook
}

// spread is a part of a time, always the same for a SampleDB and another for each.
func (s *imageTopic) spread(most time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s.db.UID)) // never fails
	return most * time.Duration(hash.Sum32()%1000) / 1000
}

// versionReason is the condition's reason, by that of the judgement.
func versionReason(reason upgrade.Reason) string {
	switch reason {
	case upgrade.Current:
		return v1.ReasonUpToDate
	case upgrade.MinorOutdated:
		return v1.ReasonMinorOutdated
	case upgrade.InstancesDiffer:
		return v1.ReasonInstancesDiffer
	case upgrade.EndOfLife:
		return v1.ReasonEndOfLife
	case upgrade.EndOfLifeNear:
		return v1.ReasonEndOfLifeNear
	case upgrade.NotLooked:
		return v1.ReasonNotLooked
	case upgrade.ImageNotRead:
		return v1.ReasonImageNotRead
	}
	return v1.ReasonUnknown
}

// upToDate is the condition UpToDate, empty before there is a primary for the first time.
func (s *imageTopic) upToDate() verdict {
	if s.starting() || s.image == nil {
		return verdict{}
	}
	reason, sentence := upgrade.Judge(s.versions())
	switch {
	case reason == upgrade.Current:
		return yes(versionReason(reason), sentence)
	case reason == upgrade.MinorOutdated:
		return no(versionReason(reason), sentence+s.all.sortingAhead())
	case reason.Known():
		return no(versionReason(reason), sentence)
	}
	return verdict{metav1.ConditionUnknown, versionReason(reason), sentence}
}

// versions is what the judgement about versions is made of. What an instance runs that can't be asked is what it ran.
func (s *imageTopic) versions() upgrade.View {
	view := upgrade.View{Now: s.now, Major: desired.Major(s.db), Image: upgrade.Image{
		Name: s.image.Name, Fixed: desired.FixedImage(s.image.Name), Reference: s.image.Reference,
		Digest: desired.Digest(s.image.Reference), Version: s.image.Version, Problem: s.image.Problem,
	}}
	if s.update != nil {
		view.Next = s.update.Message
	}
	for _, i := range s.others.instanceStatuses() {
		one := upgrade.Instance{Name: i.Name, Version: i.Version, Digest: i.ImageID}
		if desired.FixedImage(i.ImageID) {
			one.Digest = desired.Digest(i.ImageID)
		}
		if desired.FixedImage(i.ImageID) && desired.SameRepository(i.ImageID, s.image.Name) {
			one.Image = i.ImageID
		}
		ordinal, _ := naming.Ordinal(i.Name)
		if pod := s.seen.pods[ordinal]; pod != nil {
			one.Former = slices.Contains(desired.Outdated(s.db, s.settings, pod), desired.FacetImage)
		}
		view.Instances = append(view.Instances, one)
	}
	return view
}
