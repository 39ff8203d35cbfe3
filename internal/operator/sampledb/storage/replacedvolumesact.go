package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
)

// volumesTopic replaces volumes by others of another size or class.
type volumesTopic struct {
	base
	// anew is the next step towards volumes that it can have only by being
	// made anew, ReplacingNext when that changes by itself, zero where something tells.
	Replacing     replacingStep
	ReplacingNext time.Time
}

// handOverAgain is how long after a refusal a primary whose volume is to be made anew is asked again.
const handOverAgain = time.Minute

// noteStorage notes on a claim for which spec.storage its volume is. One that is to be made anew keeps what it has
// noted, because that is why.
func (s *volumesTopic) noteStorage(claim *corev1.PersistentVolumeClaim, ordinal int) {
	note := s.StorageNote()
	if current := s.Seen.Claims[ordinal]; len(s.AsksAnother(current)) > 0 {
		note = current.Annotations[naming.AnnotationStorage]
	}
	volumes.NoteStorage(claim, note)
}

// replacingView is what the scope knows of volumes that are to be made anew.
func (s *volumesTopic) anewView(missing string) replacingView {
	v := replacingView{
		primary: s.Primary(), votersKnown: len(s.Voters()) > 0, missing: missing, busy: s.busyForReplacing(),
		undecided: s.KeepsFormerSize(),
	}
	size, err := desired.Size(s.DB)
	v.template = err == nil && s.Seen.Set != nil && s.Seen.Set.DeletionTimestamp == nil &&
		s.Wrote.MadeBy(s.Seen.Set, size)
	if last, err := time.Parse(time.RFC3339, s.DB.Annotations[naming.AnnotationSwitchoverAt]); err == nil &&
		s.Now.Before(last.Add(handOverAgain)) {
		v.refused = s.DB.Annotations[naming.AnnotationSwitchoverRefused]
	}
	for ordinal, is := range s.Fleet().Instances {
		claim, i := s.Seen.Claims[ordinal], replacingInstance{name: is.Name, exists: is.Exists, ready: is.Ready}
		i.due, i.counts, i.aside = s.AsksAnother(claim), s.counts(is.Name), s.All.dataAside(ordinal)
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
	primary, is := s.Seen.Answers[s.Primary()].Election, s.Seen.Answers[name].Election
	return slices.Contains(s.Voters(), name) && is.Voter != "" && primary.Configuration.Has(is.Voter)
}

// fitAnew is whether the data fits on the volumes that spec.storage asks for, by what the instances that count say.
func (s *volumesTopic) fitAnew(v replacingView) space.Fit {
	wants := s.DB.Spec.Storage.Size
	if v.undecided {
		wants = s.Wrote.Size
	}
	size, err := resource.ParseQuantity(wants)
	if err != nil {
		return space.Fit{Answer: space.NotKnown, Message: err.Error()}
	}
	counting := slices.DeleteFunc(s.All.volumes(), func(r space.Volume) bool {
		return slices.ContainsFunc(v.instances, func(i replacingInstance) bool {
			return naming.ClaimOf(i.name) == r.Name && !i.counts
		})
	})
	return space.FitsOn(counting, size.Value())
}

// busyForReplacing is what is under way that a copy onto a new volume would disturb, "" for nothing.
func (s *volumesTopic) busyForReplacing() string {
	switch {
	case s.Blocked:
		return "what keeps other changes from being made: Ready says what that is"
	case s.Moving != "":
		return "another instance to take over: " + s.Moving
	case s.Decision.Action != "" && s.Decision.Action != world.ActionNone:
		return "a restart: " + cmp.Or(s.Decision.Message, s.Decision.Reason)
	case s.Asks(world.RequestRestart):
		return "the restart that was asked for"
	case s.RestoreWanted():
		return "the restore"
	case s.Scaling.Message != "":
		return "instances to be removed: " + s.Scaling.Message
	}
	return s.BusyForHandOver()
}

// ApplyReplacing does the next step towards volumes that are as spec.storage wants them, where they have to be made
// anew for it. Nothing is remembered of it but the size in force: what is left follows from the claims.
func (s *volumesTopic) ApplyReplacing(ctx context.Context) error {
	if s.Starting() {
		return nil
	}
	missing := ""
	if s.Wrote.StorageClassName != nil {
		class, err := s.All.storageClass(ctx, s.Wrote.StorageClassName)
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
	s.Replacing = d
	if d.reason == replacingCurrent {
		return nil
	}
	s.Storage = d.verdict()
	switch d.reason {
	case replacingRefused:
		s.ReplacingNext = s.Now.Add(handOverAgain)
	case replacingTemplate:
		return s.RemoveTemplate(ctx)
	case replacingHandOver:
		return s.handOverForReplacing(ctx, d)
	case replacingReplaced:
		return s.replaceVolume(ctx, d)
	}
	return nil
}

// lookAgain reads the claims past the cache before a volume goes: it can't be brought back.
func (s *volumesTopic) lookAgain(ctx context.Context, d replacingStep) (replacingStep, error) {
	for ordinal := range s.Instances() {
		name := naming.Instance(s.DB.Name, ordinal)
		claim, err := world.Find(ctx, s.Reader, s.DB, naming.ClaimOf(name), &corev1.PersistentVolumeClaim{})
		if err != nil {
			return d, err
		}
		if name == d.target {
			aside := volumes.DataAside(s.DB, name, s.Config.Restored, claim)
			if aside.What != "" && claim != nil && claim.DeletionTimestamp == nil {
				return d.keeps(name, aside), nil
			}
			continue
		}
		if seen := s.Seen.Claims[ordinal]; claim == nil || claim.DeletionTimestamp != nil || claim.UID != seen.UID {
			d.reason = replacingOthers
			d.message = fmt.Sprintf("%s is next when the volume %s is there again", d.target, naming.ClaimOf(name))
			return d, nil
		}
	}
	return d, nil
}

// handOverForReplacing asks for a switchover.
func (s *volumesTopic) handOverForReplacing(ctx context.Context, d replacingStep) error {
	to := naming.SwitchoverAny
	if order := s.PreferredOrder(s.Instances()); order != nil {
		to = order[slices.IndexFunc(order, func(name string) bool { return name != d.target })]
	}
	return s.AskSwitchover(ctx, to, "before the volume of the primary is made anew")
}

// replaceVolume deletes the claim and the Pod of an instance. The claim goes when the Pod is gone; then both are made
// anew, as they are wanted now.
func (s *volumesTopic) replaceVolume(ctx context.Context, d replacingStep) error {
	ordinal, _ := naming.Ordinal(d.target)
	claim, pod := s.Seen.Claims[ordinal], s.Seen.Pods[ordinal]
	if claim.DeletionTimestamp == nil {
		why := strings.Join(s.AsksAnother(claim), " and ")
		if err := s.All.DeleteClaim(ctx, claim); err != nil {
			return err
		}
		s.AddEvent(world.EventReplacingVolume, fmt.Sprintf("%s: storage.%s changed, and %s copies its data anew",
			claim.Name,
			why, d.target))
	}
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	return s.Replace(ctx, pod, "its volume is made anew")
}
