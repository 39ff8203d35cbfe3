package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
)

// The reasons of decisions about the volume of an instance.
const (
	removalWanted    = "Wanted"         // the spec wants its instance
	removalRetained  = "Retained"       // storage.whenScaled is Retain
	removalNotScaled = "NotScaled"      // the StatefulSet is not known to do without its instance
	removalUsed      = "InUse"          // a Pod uses it
	removalRestoring = "Restoring"      // a restore may have made its data there
	removalNoPrimary = "NoPrimary"      // only a primary proves that the data is somewhere else
	removalUnknown   = "VotersUnknown"  // the primary does not say who counts
	removalVoting    = "StillVoting"    // its instance still counts for commits and votes
	removalGoing     = "PrimaryGoing"   // the primary's volume goes too
	removalSetAside  = "DataSetAside"   // it has the data that a restore in place or an upgrade has replaced
	removalFormer    = "FormerSampleDB" // it may have the data of a former SampleDB, which the primary has not
	removalReleased  = "Released"       // nothing is on it that the primary has not
)

// volume is what the decision about the volume of one instance is made of.
type volume struct {
	// instance is the one that has it, ordinal its number, and want how many instances the spec wants.
	instance      string
	ordinal, want int
	// deletes says that storage.whenScaled is Delete.
	deletes bool
	// scaled says that the StatefulSet is known to do without the instance.
	scaled bool
	// pod is one that uses the volume, "" for none.
	pod string
	// restoring says that a restore is wanted or under way.
	restoring bool
	// primary takes writes; "" where none is known to. voters are those that it has recorded; empty
	// where that is not known.
	primary string
	voters  []string
	// going says that the primary's volume is not known to stay: somebody may have deleted it, which takes effect when
	// its Pod ends.
	going bool
	// setAside is former data that is on the volume and nowhere else, "" for none.
	setAside string
	// former says that the volume is older than the SampleDB, and than that of the primary.
	former bool
}

// removal is whether a volume goes, and why. The message says what a volume waits for that would go otherwise.
type removal struct {
	remove  bool
	reason  string
	message string
}

// remove decides whether the volume of an instance that was scaled away goes. It goes when a primary takes writes
// without it, and nothing is on it that the primary has not. What is not known removes nothing.
func remove(v volume) removal {
	keep := func(reason, format string, args ...any) removal {
		return removal{reason: reason, message: fmt.Sprintf(format, args...)}
	}
	switch {
	case v.ordinal < v.want:
		return removal{reason: removalWanted}
	case !v.deletes:
		return removal{reason: removalRetained}
	case !v.scaled:
		return keep(removalNotScaled, "it is not known whether the StatefulSet has given up %s", v.instance)
	case v.pod != "":
		return keep(removalUsed, "Pod %s uses it", v.pod)
	case v.restoring:
		return keep(removalRestoring, "a restore has not ended")
	case v.primary == "":
		return keep(removalNoPrimary, "no instance is known to take writes")
	case len(v.voters) == 0:
		return keep(removalUnknown, "%s does not say which instances count for commits and votes", v.primary)
	case v.primary == v.instance || slices.Contains(v.voters, v.instance):
		return keep(removalVoting, "%s still counts for commits and votes", v.instance)
	case v.going:
		return keep(removalGoing, "the volume of the primary %s is being deleted", v.primary)
	case v.setAside != "":
		return keep(removalSetAside, "it has %s; delete it when nobody needs that", v.setAside)
	case v.former:
		return keep(removalFormer, "it is of a former SampleDB of this name, and the volume of %s is newer; "+
			"delete it when nobody needs it", v.primary)
	}
	return removal{remove: true, reason: removalReleased}
}

// decideRemoval is remove, where a volume would go once more with the primary's claim read past the cache: what goes
// can't be brought back.
func (s *storageTopic) decideRemoval(ctx context.Context, ordinal int) (removal, error) {
	v := s.volume(ordinal)
	if decided := remove(v); !decided.remove {
		return decided, nil
	}
	primary, _ := naming.Ordinal(v.primary)
	claim, err := world.Find(ctx, s.Reader, s.DB, naming.Claim(s.DB.Name, primary), &corev1.PersistentVolumeClaim{})
	v.going = claim == nil || claim.DeletionTimestamp != nil
	return remove(v), err
}

// volume is what the scope knows of that of an instance.
func (s *storageTopic) volume(ordinal int) volume {
	return volume{
		instance: naming.Instance(s.DB.Name, ordinal), ordinal: ordinal, want: s.Instances(),
		deletes:   s.DB.Spec.Storage.WhenScaled == v1.ScaleDelete,
		scaled:    s.scaledBelow(ordinal),
		pod:       s.user(ordinal),
		restoring: s.RestoreWanted(),
		primary:   s.Primary(), voters: s.Voters(),
		setAside: s.dataAside(ordinal).What,
		former:   s.IsFormer(ordinal),
	}
}

// scaledBelow says that the StatefulSet is there, does without an instance, and that its controller has seen that.
func (s *storageTopic) scaledBelow(ordinal int) bool {
	set := s.Seen.Set
	return set != nil && set.DeletionTimestamp == nil &&
		set.Spec.Replicas != nil &&
		int(*set.Spec.Replicas) <= ordinal && set.Status.ObservedGeneration == set.Generation
}

// user is a Pod that uses the volume of an instance: its own, in whatever state, or one that has not ended.
func (s *storageTopic) user(ordinal int) string {
	if pod := s.Seen.Pods[ordinal]; pod != nil {
		return pod.Name
	}
	return s.Seen.Users[naming.Claim(s.DB.Name, ordinal)]
}

// UsedBy notes the claims that a Pod uses which has not ended.
func UsedBy(pod *corev1.Pod, users map[string]string) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			users[v.PersistentVolumeClaim.ClaimName] = pod.Name
		}
	}
}

// dataAside is the former data that is on the volume of an instance and nowhere else.
func (s *storageTopic) dataAside(ordinal int) volumes.Aside {
	return volumes.DataAside(s.DB, naming.Instance(s.DB.Name, ordinal), s.Config.Restored, s.Seen.Claims[ordinal])
}

// IsFormer says that the volume of an instance is older than the SampleDB, so of a former one of its name, and older
// than the primary's, or that of the last primary there was: then the primary's data may be another.
func (s *storageTopic) IsFormer(ordinal int) bool {
	claim, status := s.Seen.Claims[ordinal], s.DB.Status
	if claim == nil || !claim.CreationTimestamp.Before(&s.DB.CreationTimestamp) {
		return false
	}
	name := cmp.Or(s.Primary(), status.Primary, status.LastPrimary)
	primary, known := naming.Ordinal(name)
	if !known || s.Seen.Claims[primary] == nil {
		return true
	}
	return claim.CreationTimestamp.Before(&s.Seen.Claims[primary].CreationTimestamp)
}

// markSetAside notes on a claim which restore in place has left replaced data on its volume.
func (s *storageTopic) markSetAside(claim *corev1.PersistentVolumeClaim, ordinal int) {
	id := volumes.RestoreAside(s.DB, naming.Instance(s.DB.Name, ordinal), s.Config.Restored, s.Seen.Claims[ordinal])
	if id == "" {
		return
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, naming.AnnotationSetAside, id)
	applied := claim.Annotations[naming.AnnotationApplied]
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, naming.AnnotationApplied, applied+"-"+id)
}
