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
)

// snapshot takes the last backup of a SampleDB that is being deleted, and names what that waits
// for, "" for nothing. First no client is let in any more: what was acknowledged is in the backup.
func (s *deletionTopic) snapshot(ctx context.Context) (waiting string, err error) {
	if desired.DeletionPolicy(s.db) != v1.DeletionSnapshot || s.config.SystemIdentifier == "" {
		return "", nil
	}
	if saved, err := s.all.savedByGreen(ctx); err != nil || saved {
		return "", err
	}
	name := naming.FinalBackup(s.db.Name, string(s.db.UID))
	for i := range s.seen.backups {
		if b := &s.seen.backups[i]; b.Name == name {
			if !s.isLast(b) {
				return fmt.Sprintf("the last backup: %s is an earlier one of that name; delete it, or set "+
					"spec.deletionPolicy to Retain or Delete to do without", name), s.keepUp(ctx)
			}
			waiting := finalBackup(b)
			if waiting == "" || ended(b) {
				return waiting, nil
			}
			return waiting, s.keepUp(ctx) // it needs a database until it is complete
		}
	}
	// What has to be tried anyway shows first whether it can be at all.
	err = s.Client.Create(ctx, desired.FinalBackup(s.db), client.FieldOwner(naming.FieldOwner), client.DryRunAll)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		log.FromContext(ctx).Info("no last backup is taken: the namespace is being deleted with all that is in it")
		return "", nil
	}
	if err := s.keepUp(ctx); err != nil {
		return "", err
	}
	switch primary := s.primary(); {
	case primary == "":
		return s.explain("a primary of which the last backup can be taken"), nil
	case !s.seen.answers[primary].Closed:
		return fmt.Sprintf("the sessions of clients at %s to end, before the last backup", primary), nil
	}
	err = s.Client.Create(ctx, desired.FinalBackup(s.db), client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", refused(err, "DatabaseBackup", name)
	}
	s.all.tellFinal(name)
	return "the last backup, " + name, nil
}

// isLast says that a backup was begun by the operator after the SampleDB was deleted. Anybody may make one of that name
// earlier, and what was written since would not be in it.
func (s *deletionTopic) isLast(b *v1.DatabaseBackup) bool {
	return b.Labels[naming.LabelOwner] == string(s.db.UID) && !b.CreationTimestamp.Before(s.db.DeletionTimestamp)
}

// keepUp keeps the database running until its last backup is taken. Who deletes the SampleDB in the foreground
// (as Argo CD does) has Kubernetes remove what belongs to it at once, but not its volumes.
func (s *deletionTopic) keepUp(ctx context.Context) error {
	changed := s.db.DeepCopy()
	if controllerutil.RemoveFinalizer(changed, metav1.FinalizerDeleteDependents) {
		patch := client.MergeFromWithOptions(s.db, client.MergeFromWithOptimisticLock{})
		if err := s.Client.Patch(ctx, changed, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
			return fmt.Errorf("keep what belongs to the SampleDB until its last backup is taken: %w", err)
		}
		s.db = changed
		s.attempts.forget(s.db.UID) // the Secrets go too, and nobody tells
	}
	return s.all.run(ctx, []phase{
		{"stop", s.all.applyStop, gates},
		{"config", s.all.applyConfig, gates},
		{"secrets", s.all.applySecrets, gates},
		{"access", s.all.applyAccess, gates},
		{"storage", s.all.applyStorage, gates},
		{"instances", s.all.applyInstances, gates},
		{"network", s.all.applyNetwork, apart},
		{"archive", s.all.applyArchive, apart},
		{"retention", s.all.applyRetention, apart},
	})
}

// finalBackup is what the last backup waits for, "" when it is complete.
func finalBackup(b *v1.DatabaseBackup) string {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	switch {
	case c == nil:
		return "the last backup, " + b.Name
	case meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete):
		return ""
	case ended(b):
		return fmt.Sprintf("the last backup, %s, which has ended without success (%s): delete it to have it tried "+
			"again, or set spec.deletionPolicy to Retain or Delete to do without", b.Name, c.Message)
	}
	return fmt.Sprintf("the last backup, %s: %s", b.Name, c.Message)
}
