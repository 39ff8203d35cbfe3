package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
)

// volumesTopic replaces volumes by others of another size or class.
type volumesTopic struct {
	storageBase
	// anew is the next step towards volumes that it can have only by being
	// made anew, replacingNext when that changes by itself, zero where something tells.
	replacing     replacingStep
	replacingNext time.Time
}

// handOverAgain is how long after a refusal a primary whose volume is to be made anew is asked again.
const handOverAgain = time.Minute

// liveClaims are those of the wanted instances, by ordinal, that are not being deleted.
func (s *storageFacts) liveClaims() (out []*corev1.PersistentVolumeClaim) {
	for ordinal := range desired.Instances(s.db) {
		if claim := s.seen.claims[ordinal]; claim != nil && claim.DeletionTimestamp == nil {
			out = append(out, claim)
		}
	}
	return out
}

// keepsFormerSize says that the user has lowered the size, and that it is not decided yet that the data fits: then the
// former size is in force. It is decided when the status says so, or a volume was made for the smaller size already.
func (s *storageFacts) keepsFormerSize() bool {
	size, err := resource.ParseQuantity(s.wrote.Size)
	if err != nil {
		return false
	}
	if decided := s.db.Status.Storage; decided != nil {
		if to, err := resource.ParseQuantity(decided.Size); err == nil && to.Cmp(size) <= 0 {
			return false
		}
	}
	smaller := false
	for _, claim := range s.liveClaims() {
		asks := s.wrote.Smaller(claim)
		smaller = smaller || asks
		if !asks && s.wrote.HasNoted(claim) {
			return false
		}
	}
	return smaller
}

// formerSize is the size that every volume has at least, where the user has lowered the size and that is not decided
// yet; zero elsewhere.
func (s *storageFacts) formerSize() (least resource.Quantity) {
	if !s.keepsFormerSize() {
		return least
	}
	for n, claim := range s.liveClaims() {
		if has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; n == 0 || has.Cmp(least) < 0 {
			least = has
		}
	}
	return least
}

// asksAnother is what the volume of a claim can have only by being made anew, nothing for no claim.
func (s *storageFacts) asksAnother(claim *corev1.PersistentVolumeClaim) []string {
	size, err := desired.Size(s.db)
	if claim == nil || err != nil {
		return nil
	}
	due := s.wrote.Anew(size, claim)
	if s.keepsFormerSize() && s.wrote.Smaller(claim) && !slices.Contains(due, volumes.AnewSize) {
		due = append(due, volumes.AnewSize)
	}
	return due
}

// storageNote is what a claim notes that is made now. As long as the former size is in force, it is made for that one.
func (s *storageFacts) storageNote() string {
	of := s.wrote
	if s.keepsFormerSize() {
		of.Size = s.db.Spec.Storage.Size
	}
	return of.Note()
}

// noteStorage notes on a claim for which spec.storage its volume is. One that is to be made anew keeps what it has
// noted, because that is why.
func (s *volumesTopic) noteStorage(claim *corev1.PersistentVolumeClaim, ordinal int) {
	note := s.storageNote()
	if current := s.seen.claims[ordinal]; len(s.asksAnother(current)) > 0 {
		note = current.Annotations[naming.AnnotationStorage]
	}
	volumes.NoteStorage(claim, note)
}

// replacingView is what the scope knows of volumes that are to be made anew.
func (s *volumesTopic) anewView(missing string) replacingView {
	v := replacingView{
		primary: s.primary(), votersKnown: len(s.voters()) > 0, missing: missing, busy: s.busyForReplacing(),
		undecided: s.keepsFormerSize(),
	}
	size, err := desired.Size(s.db)
	v.template = err == nil && s.seen.set != nil && s.seen.set.DeletionTimestamp == nil &&
		s.wrote.MadeBy(s.seen.set, size)
	if last, err := time.Parse(time.RFC3339, s.db.Annotations[naming.AnnotationSwitchoverAt]); err == nil &&
		s.now.Before(last.Add(handOverAgain)) {
		v.refused = s.db.Annotations[naming.AnnotationSwitchoverRefused]
	}
	for ordinal, is := range s.fleet().instances {
		claim, i := s.seen.claims[ordinal], replacingInstance{name: is.name, exists: is.exists, ready: is.ready}
		i.due, i.counts, i.aside = s.asksAnother(claim), s.counts(is.name), s.all.dataAside(ordinal)
		i.going = claim != nil && claim.DeletionTimestamp != nil
		i.bound = claim != nil && claim.Status.Phase == corev1.ClaimBound
		v.instances = append(v.instances, i)
	}
	v.fit = s.fitAnew(v)
	return v
}

// counts says that the primary counts an instance with the data that is on its volume now: one of the same name that
// has lost its volume is another voter.
func (s *volumesTopic) counts(name string) bool {
	primary, is := s.seen.answers[s.primary()].Election, s.seen.answers[name].Election
	return slices.Contains(s.voters(), name) && is.Voter != "" && primary.Configuration.Has(is.Voter)
}

// fitAnew is whether the data fits on the volumes that spec.storage asks for, by what the instances that count say.
func (s *volumesTopic) fitAnew(v replacingView) space.Fit {
	wants := s.db.Spec.Storage.Size
	if v.undecided {
		wants = s.wrote.Size
	}
	size, err := resource.ParseQuantity(wants)
	if err != nil {
		return space.Fit{Answer: space.NotKnown, Message: err.Error()}
	}
	counting := slices.DeleteFunc(s.all.volumes(), func(r space.Volume) bool {
		return slices.ContainsFunc(v.instances, func(i replacingInstance) bool {
			return naming.ClaimOf(i.name) == r.Name && !i.counts
		})
	})
	return space.FitsOn(counting, size.Value())
}

// busyForReplacing is what is under way that a copy onto a new volume would disturb, "" for nothing.
func (s *volumesTopic) busyForReplacing() string {
	switch {
	case s.blocked:
		return "what keeps other changes from being made: Ready says what that is"
	case s.moving != "":
		return "another instance to take over: " + s.moving
	case s.decision.action != "" && s.decision.action != actionNone:
		return "a restart: " + cmp.Or(s.decision.message, s.decision.reason)
	case s.restartAsked():
		return "the restart that was asked for"
	case s.restoreWanted():
		return "the restore"
	case s.scaling.message != "":
		return "instances to be removed: " + s.scaling.message
	}
	return s.busyForHandOver()
}

// applyReplacing does the next step towards volumes that are as spec.storage wants them, where they have to be made
// anew for it. Nothing is remembered of it but the size in force: what is left follows from the claims.
func (s *volumesTopic) applyReplacing(ctx context.Context) error {
	if s.starting() {
		return nil
	}
	missing := ""
	if s.wrote.StorageClassName != nil {
		class, err := s.all.storageClass(ctx, s.wrote.StorageClassName)
		if err != nil {
			return err
		}
		missing = class.missing
	}
	d := decideReplacing(s.anewView(missing))
	if d.reason == replacingReplaced {
		var err error
		if d, err = s.lookAgain(ctx, d); err != nil {
			return err
		}
	}
	s.replacing = d
	if d.reason == replacingCurrent {
		return nil
	}
	s.storage = d.verdict()
	switch d.reason {
	case replacingRefused:
		s.replacingNext = s.now.Add(handOverAgain)
	case replacingTemplate:
		return s.removeTemplate(ctx)
	case replacingHandOver:
		return s.handOverForReplacing(ctx, d)
	case replacingReplaced:
		return s.replaceVolume(ctx, d)
	}
	return nil
}

// lookAgain reads the claims past the cache before a volume goes: it can't be brought back.
func (s *volumesTopic) lookAgain(ctx context.Context, d replacingStep) (replacingStep, error) {
	for ordinal := range s.instances() {
		name := naming.Instance(s.db.Name, ordinal)
		claim, err := find(ctx, s.Reader, s.db, naming.ClaimOf(name), &corev1.PersistentVolumeClaim{})
		if err != nil {
			return d, err
		}
		if name == d.target {
			aside := volumes.DataAside(s.db, name, s.config.Restored, claim)
			if aside.What != "" && claim != nil && claim.DeletionTimestamp == nil {
				return d.keeps(name, aside), nil
			}
			continue
		}
		if seen := s.seen.claims[ordinal]; claim == nil || claim.DeletionTimestamp != nil || claim.UID != seen.UID {
			d.reason = replacingOthers
			d.message = fmt.Sprintf("%s is next when the volume %s is there again", d.target, naming.ClaimOf(name))
			return d, nil
		}
	}
	return d, nil
}

// removeTemplate deletes the StatefulSet, whose template for claims can't be changed. Its Pods stay, and belong to the
// one that is made in its place.
func (s *act) removeTemplate(ctx context.Context) error {
	set := s.seen.set
	if set == nil || set.DeletionTimestamp != nil {
		return nil
	}
	err := s.Client.Delete(ctx, set, client.Preconditions{UID: &set.UID},
		client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete StatefulSet %s, to make it anew: %w", set.Name, err)
	}
	return nil
}

// handOverForReplacing asks for a switchover, as a user would: so it goes on, ends, or is refused in the same way.
func (s *volumesTopic) handOverForReplacing(ctx context.Context, d replacingStep) error {
	to := naming.SwitchoverAny
	if order := s.preferredOrder(s.instances()); order != nil {
		to = order[slices.IndexFunc(order, func(name string) bool { return name != d.target })]
	}
	err := s.annotate(ctx, map[string]string{
		naming.AnnotationSwitchover: to, naming.AnnotationSwitchoverAt: s.now.UTC().Format(time.RFC3339),
		naming.AnnotationSwitchoverRefused: "",
	})
	if err != nil {
		return fmt.Errorf("ask for a switchover before the volume of the primary is made anew: %w", err)
	}
	return nil
}

// replaceVolume deletes the claim and the Pod of an instance. The claim goes when the Pod is gone; then both are made
// anew, as they are wanted now.
func (s *volumesTopic) replaceVolume(ctx context.Context, d replacingStep) error {
	ordinal, _ := naming.Ordinal(d.target)
	claim, pod := s.seen.claims[ordinal], s.seen.pods[ordinal]
	if claim.DeletionTimestamp == nil {
		why := strings.Join(s.asksAnother(claim), " and ")
		if err := s.all.deleteClaim(ctx, claim); err != nil {
			return err
		}
		s.addEvent(eventReplacingVolume, fmt.Sprintf("%s: storage.%s changed, and %s copies its data anew", claim.Name,
			why, d.target))
	}
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	return s.replace(ctx, pod, "its volume is made anew")
}
