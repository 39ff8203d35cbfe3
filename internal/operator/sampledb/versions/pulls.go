package versions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// Pulls has the nodes of the instances pull an image, for an update or for another major version.
type Pulls struct{ *world.Act }

// NodePull is a node of instances that pulls the image of an update, for the first of them by ordinal.
type NodePull struct {
	Ordinal int
	Node    string
	// Job is nil where there is none; Image is what it pulls, "" where it is of another node.
	Job     *batchv1.Job
	Image   string
	Version string
	State   upgrade.Pull
	Trouble string
}

// Of are the nodes of the instances, by ordinal. What they get has to have a version that is accepted.
func (s Pulls) Of(accepts func(version string) bool) (out []NodePull) {
	for ordinal := range s.Instances() {
		pod := s.Seen.Pods[ordinal]
		if pod == nil || pod.Spec.NodeName == "" ||
			slices.ContainsFunc(out, func(p NodePull) bool { return p.Node == pod.Spec.NodeName }) {
			continue
		}
		p := NodePull{Ordinal: ordinal, Node: pod.Spec.NodeName, Job: s.Job(naming.PullJob(s.DB.Name, ordinal))}
		if p.Job != nil && p.Job.Spec.Template.Spec.NodeName == p.Node {
			p.Image = p.Job.Annotations[naming.AnnotationPulls]
			p.Version, p.State, p.Trouble = s.pullState(p, accepts)
		}
		out = append(out, p)
	}
	return out
}

// pullState is how far a node is, and why it can't get the image. What it has got is looked into: it has to be the
// version that the target is said to have.
func (s Pulls) pullState(
	p NodePull, accepts func(string) bool,
) (version string, state upgrade.Pull, trouble string) {
	run := s.lookJob(p.Job)
	if run.result != nil {
		version = run.result.Version
	}
	late := s.Now.Sub(p.Job.CreationTimestamp.Time) > pullPatience
	switch {
	case run.state == jobs.Ending:
		return version, upgrade.PullNone, ""
	case run.state == jobs.Complete && version != "" && accepts(version):
		return version, upgrade.PullDone, ""
	case run.state == jobs.Complete && version != "":
		return version, upgrade.PullFailed, fmt.Sprintf("%s has PostgreSQL %s on %s", p.Image, version, p.Node)
	case run.state >= jobs.Complete, run.notPulled() && late:
		return version, upgrade.PullFailed, fmt.Sprintf("%s can't be had on %s: %s", p.Image, p.Node, run.problem())
	}
	return version, upgrade.PullRunning, ""
}

// PulledSoFar is how far all the nodes are together, with which image: one without its Job has to be asked first.
func PulledSoFar(pulls []NodePull) (state upgrade.Pull, image, trouble string) {
	state = upgrade.PullDone
	for _, p := range pulls {
		switch {
		case p.Image == "" || p.State == upgrade.PullNone || p.Image != pulls[0].Image:
			return upgrade.PullNone, "", ""
		case p.State == upgrade.PullFailed:
			state, trouble = upgrade.PullFailed, cmp.Or(trouble, p.Trouble)
		case p.State == upgrade.PullRunning && state == upgrade.PullDone:
			state = upgrade.PullRunning
		}
		image = p.Image
	}
	return state, image, trouble
}

// Start has each node of the instances pull the image of a target.
func (s Pulls) Start(ctx context.Context, image string, major int, pulls []NodePull) error {
	for _, p := range pulls {
		if p.Job != nil && p.Image != image {
			if err := s.Jobs().Remove(ctx, p.Job); err != nil {
				return err
			}
		}
		if p.Job == nil {
			job := desired.PullJob(s.DB, s.Settings,
				desired.Pull{Ordinal: p.Ordinal, Node: p.Node, Image: image, Major: major})
			if err := s.Jobs().Create(ctx, job); err != nil {
				return err
			}
		}
	}
	return nil
}

// End takes away the Jobs that pulled.
func (s Pulls) End(ctx context.Context) error {
	return s.RemoveJobs(ctx, func(job *batchv1.Job) bool { return job.Annotations[naming.AnnotationPulls] != "" })
}

// Pulled is the image that a Job's Pod has run by its digest, "" where the kubelet gives none that can be pulled. It is
// named by the repository that the Pod's image is of: a node that has the same image from another one may say that.
func (s Pulls) Pulled(job string) string {
	for _, pod := range s.Seen.ImagePods {
		id := desired.ImageID(&pod, naming.ContainerImage)
		if pod.Labels[batchv1.JobNameLabel] == job && desired.FixedImage(id) {
			return desired.InRepositoryOf(pod.Spec.Containers[0].Image, id)
		}
	}
	return ""
}

func (s Pulls) lookJob(job *batchv1.Job) lookJob {
	run := jobs.Of(job, s.Seen.ImagePods)
	out := lookJob{state: run.State(), end: run.EndMessage()}
	if text := run.Last(naming.ContainerImage); text != "" {
		out.result = jobs.Result[protocol.ImageResult](text)
	}
	if pod := run.Newest(); pod != nil {
		out.trouble = pods.TroubleOf(pod)
	}
	return out
}
