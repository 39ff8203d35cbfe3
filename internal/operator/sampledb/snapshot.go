package sampledb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// snapshot takes the last backup of a SampleDB that is being deleted, and names what that waits
// for, "" for nothing. First no client is let in any more: what was acknowledged is in the backup.
func (s *deletionTopic) snapshot(ctx context.Context) (waiting string, err error) {
	if desired.DeletionPolicy(s.DB) != v1.DeletionSnapshot || s.Config.SystemIdentifier == "" {
		return "", nil
	}
	if saved, err := firstSaid(ctx, s.all.annexes.Saved); err != nil || saved {
		return "", err
	}
	name := naming.FinalBackup(s.DB.Name, string(s.DB.UID))
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; b.Name == name {
			if !s.isLast(b) {
				return fmt.Sprintf("the last backup: %s is an earlier one of that name; delete it, or set "+
					"spec.deletionPolicy to Retain or Delete to do without", name), s.KeepUp(ctx)
			}
			waiting := finalBackup(b)
			if waiting == "" || world.Ended(b) {
				return waiting, nil
			}
			return waiting, s.KeepUp(ctx) // it needs a database until it is complete
		}
	}
	// What has to be tried anyway shows first whether it can be at all.
	err = s.Client.Create(ctx, desired.FinalBackup(s.DB), client.FieldOwner(naming.FieldOwner), client.DryRunAll)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		log.FromContext(ctx).Info("no last backup is taken: the namespace is being deleted with all that is in it")
		return "", nil
	}
	if err := s.KeepUp(ctx); err != nil {
		return "", err
	}
	switch primary := s.Primary(); {
	case primary == "":
		return s.Explain("a primary of which the last backup can be taken"), nil
	case !s.Seen.Answers[primary].Closed:
		return fmt.Sprintf("the sessions of clients at %s to end, before the last backup", primary), nil
	}
	err = s.Client.Create(ctx, desired.FinalBackup(s.DB), client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", world.Refused(err, "DatabaseBackup", name)
	}
	s.tellFinal(name)
	return "the last backup, " + name, nil
}

// tellFinal tells that the last backup is taken, and what it may lack.
func (s *deletionTopic) tellFinal(name string) {
	tell, lacks := s.AddEvent, allSaid(s.all.annexes.Lacks)
	if lacks != "" {
		tell = s.AddWarning
	}
	tell(world.EventBackup, name+" is taken: the SampleDB is being deleted"+lacks)
}

// isLast says that a backup was begun by the operator after the SampleDB was deleted. Anybody may make one of that name
// earlier, and what was written since would not be in it.
func (s *deletionTopic) isLast(b *v1.DatabaseBackup) bool {
	return b.Labels[naming.LabelOwner] == string(s.DB.UID) && !b.CreationTimestamp.Before(s.DB.DeletionTimestamp)
}

// KeepUp keeps the database running until its last backup is taken. Who deletes the SampleDB in the foreground
// (as Argo CD does) has Kubernetes remove what belongs to it at once, but not its volumes.
func (s *deletionTopic) KeepUp(ctx context.Context) error {
	changed := s.DB.DeepCopy()
	if controllerutil.RemoveFinalizer(changed, metav1.FinalizerDeleteDependents) {
		patch := client.MergeFromWithOptions(s.DB, client.MergeFromWithOptimisticLock{})
		if err := s.Client.Patch(ctx, changed, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
			return fmt.Errorf("keep what belongs to the SampleDB until its last backup is taken: %w", err)
		}
		s.DB = changed
		s.Attempts.Forget(s.DB.UID) // the Secrets go too, and nobody tells
	}
	return s.all.run(ctx, []phase{
		{"stop", s.all.ApplyStop, gates},
		{"config", s.all.ApplyConfig, gates},
		{"secrets", s.all.ApplySecrets, gates},
		{"access", s.all.applyAccess, gates},
		{"storage", s.all.ApplyStorage, gates},
		{"instances", s.all.ApplyInstances, gates},
		{"network", s.all.applyNetwork, apart},
		{"archive", s.all.ApplyArchive, apart},
		{"retention", s.all.ApplyRetention, apart},
	})
}

// finalBackup is what the last backup waits for, "" when it is complete.
func finalBackup(b *v1.DatabaseBackup) string {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	switch {
	case c == nil:
		return "the last backup, " + b.Name
	case world.Complete(b):
		return ""
	case c.Status == metav1.ConditionTrue: // by a former version, though its Pod had left no result
		return fmt.Sprintf("the last backup, %s, of which nobody knows where it is in the archive: delete it to have "+
			"it taken again, or set spec.deletionPolicy to Retain or Delete to do without", b.Name)
	case world.Ended(b):
		return fmt.Sprintf("the last backup, %s, which has ended without success (%s): delete it to have it tried "+
			"again, or set spec.deletionPolicy to Retain or Delete to do without", b.Name, c.Message)
	}
	return fmt.Sprintf("the last backup, %s: %s", b.Name, c.Message)
}
