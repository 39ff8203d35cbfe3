package sampledb

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/sampledb/restore"
	"toban.dev/internal/operator/sampledb/secrets"
	"toban.dev/internal/operator/sampledb/storage"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// observe reads what there is and, in the same round, tells the agents what the
// spec wants of them.
func (s *scope) observe(ctx context.Context) error {
	if err := s.observeObjects(ctx); err != nil {
		return err
	}
	s.TakeSizeInForce()
	s.TakeWALSizeInForce()
	known, err := s.Known()
	if err != nil {
		return err
	}
	if begun, err := firstSaid(ctx, s.annexes.Record); err != nil || begun {
		s.Seen.Doubted = true
		return err
	}
	s.Config = desired.Config(s.DB, known)
	s.InitializedAt = s.DB.Status.InitializedAt
	s.Image, s.Update = s.DB.Status.Image.DeepCopy(), s.DB.Status.Update.DeepCopy()
	s.Restart = s.DB.Status.Restart.DeepCopy()
	s.Upgrade, s.Rehearsal = s.DB.Status.Upgrade.DeepCopy(), s.DB.Status.Rehearsal.DeepCopy()
	s.Stop = s.DB.Status.Stop.DeepCopy()
	s.Finish, s.SortedBy = s.DB.Status.Finish.DeepCopy(), s.DB.Status.SortedBy
	s.ObservePassword()
	s.Seen.Answers, s.Seen.Doubted = s.syncAgents(ctx, s.Seen.Pods)
	s.Seen.Readers.Answers, _ = s.syncAgents(ctx, s.Seen.Readers.Pods)
	if known.SystemIdentifier == "" {
		known.SystemIdentifier = agreedIdentifier(s.Seen.Answers)
	}
	known.Given = secrets.GivenAuthorities(known.Given, s.Config.Members, s.Seen.Answers)
	s.Config = desired.Config(s.DB, known)
	s.Trust, s.AppHosts = s.DB.Status.ClientAuthorities, s.DB.Status.AppHosts
	s.Loss = restore.DecideLoss(s.LossView())
	return nil
}

// Known is what was learned before and must be kept. The ConfigMap counts
// besides the status, because a cache may not have the latest status yet. Of the authorities in it those are kept
// that are the SampleDB's own and count: somebody else may have written there.
func (s *scope) Known() (desired.Known, error) {
	known := desired.Known{
		SystemIdentifier: s.DB.Status.SystemIdentifier,
		Least:            s.Least(),
		Readers:          s.Seen.Readers.Present(),
		Left:             s.DeletionPolicy.Reason == world.DeletionOrphaned || s.DeletionPolicy.Spares(),
	}
	var old protocol.Config
	if s.Seen.Config != nil && world.Ours(s.Seen.Config, s.DB) {
		var err error
		if old, err = desired.ParseConfig(s.Seen.Config); err != nil {
			old = protocol.Config{} // somebody has broken it; it is written anew
		}
	}
	known.Operator = s.Credentials.Operator(s.DB, old.Operator)
	if err := s.ObserveAuthority(old.Authority); err != nil {
		return known, err
	}
	bundle, none, err := s.Credentials.Bundle(s.DB, s.Authorities(), old.Authority)
	if err != nil {
		return known, err
	}
	if !none {
		known.Authority = bundle
	}
	known.Preferred = s.PreferredOrder(max(desired.Instances(s.DB), known.Least))
	known.Witness, known.Restored, known.Given = old.Witness, old.Restored, old.Given
	known.RestoredBefore, known.Survivor = old.RestoredBefore, old.Survivor
	known.Upgraded = old.Upgraded
	s.Written = old
	known.Major, known.FirstMajor = old.Major, s.FirstMajor(old)
	if known.SystemIdentifier == "" || old.Upgraded != "" {
		known.SystemIdentifier = old.SystemIdentifier
	}
	return known, nil
}

// agreedIdentifier is the system identifier that the answers have in common, and
// "" when none has one or they differ.
func agreedIdentifier(answers map[string]protocol.Status) string {
	agreed := ""
	for _, a := range answers {
		switch {
		case a.SystemIdentifier == "" || a.Data != protocol.DataPresent:
		case agreed == "":
			agreed = a.SystemIdentifier
		case agreed != a.SystemIdentifier:
			return ""
		}
	}
	return agreed
}

func (s *scope) observeObjects(ctx context.Context) error {
	var err error
	if s.Seen.Config, err = world.Find(ctx, s.Client, s.DB, naming.ConfigMap(s.DB.Name),
		&corev1.ConfigMap{}); err != nil {
		return err
	}
	if err := s.ObserveLease(ctx); err != nil {
		return err
	}
	if s.Seen.Set, err = world.Find(ctx, s.Client, s.DB, naming.StatefulSet(s.DB.Name),
		&appsv1.StatefulSet{}); err != nil {
		return err
	}
	if err := s.ObserveReaders(ctx); err != nil {
		return err
	}
	if err := s.ObservePooler(ctx); err != nil {
		return err
	}
	if err := s.observePods(ctx); err != nil {
		return err
	}
	if err := s.ObserveRefusedPods(ctx); err != nil {
		return err
	}
	if s.Seen.Jobs, err = index.Jobs(ctx, s.Client, s.DB.Namespace, world.PartOf(s.DB)); err != nil {
		return err
	}
	if err := s.observeClaims(ctx); err != nil {
		return err
	}
	s.observeDeletionPolicy(ctx)
	if s.DeletionPolicy.Spares() {
		return nil // the kinds DatabaseBackup and FaultDrill may be gone too
	}
	if err := s.ObserveDrills(ctx); err != nil {
		return err
	}
	return s.ObserveBackups(ctx)
}

func (s *scope) observePods(ctx context.Context) error {
	pods, err := index.Pods(ctx, s.Client, s.DB.Namespace, world.PartOf(s.DB))
	if err != nil {
		return err
	}
	s.Seen.Pods, s.Seen.Users = map[int]*corev1.Pod{}, map[string]string{}
	lists := s.Seen.PodsOfComponents()
	for i := range pods {
		pod := &pods[i]
		storage.UsedBy(pod, s.Seen.Users)
		component := pod.Labels[naming.LabelComponent]
		if list := lists[component]; list != nil {
			*list = append(*list, *pod)
			continue
		}
		switch component {
		case naming.ComponentReader:
			s.Seen.Readers.Note(s.DB, pod)
		case naming.ComponentInstance:
			if n, ok := naming.Ordinal(pod.Name); ok && pod.Name == naming.Instance(s.DB.Name, n) {
				s.Seen.Pods[n] = pod
			}
		}
	}
	return nil
}

func (s *scope) observeClaims(ctx context.Context) error {
	claims, err := index.Claims(ctx, s.Client, s.DB.Namespace, world.PartOf(s.DB))
	if err != nil {
		return err
	}
	s.Seen.Claims, s.Seen.WALs = map[int]*corev1.PersistentVolumeClaim{}, map[int]*corev1.PersistentVolumeClaim{}
	for i := range claims {
		claim := &claims[i]
		s.Seen.Readers.Note(s.DB, claim)
		if n, ok := naming.Ordinal(claim.Name); ok && claim.Name == naming.Claim(s.DB.Name, n) {
			s.Seen.Claims[n] = claim
		} else if ok && claim.Name == naming.WALClaim(s.DB.Name, n) {
			s.Seen.WALs[n] = claim
		}
	}
	return nil
}
