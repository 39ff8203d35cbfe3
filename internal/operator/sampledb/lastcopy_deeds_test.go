package sampledb

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
)

// one is one of several.
func one[T any](s *story, of ...T) T { return of[s.IntN(len(of))] }

// make makes the SampleDB, where there is none and its kind is there.
func (s *story) make() {
	definition := have[*metav1.PartialObjectMetadata](s.apiServer, kindDefinition, naming.DefinitionSampleDB)
	if s.db() != nil {
		return
	}
	if definition == nil {
		s.define()
	} else if definition.DeletionTimestamp != nil {
		return
	}
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: modelDB}}
	db.Spec.Version, db.Spec.Instances, db.Spec.Storage.Size = 17, int32(1+s.IntN(3)), "1Gi"
	db.Spec.Init = &v1.InitSpec{None: true}
	s.setPolicy(db)
	s.setScaled(db)
	_ = s.create(db)
	s.saysDelete()
}

// saysDelete notes that the SampleDB says so.
func (s *story) saysDelete() {
	if db := s.db(); db != nil && db.Spec.DeletionPolicy == v1.DeletionDelete {
		s.once[db.UID] = true
	}
}

func (s *story) setPolicy(db *v1.SampleDB) {
	db.Spec.DeletionPolicy = one(s, "", "", v1.DeletionSnapshot, v1.DeletionRetain, v1.DeletionDelete)
	db.Spec.Backup = one(s, nil, nil, &v1.BackupSpec{}, &v1.BackupSpec{None: db.Spec.Restore == nil})
	if db.Spec.Backup != nil && db.Spec.Backup.None && db.Spec.DeletionPolicy == v1.DeletionSnapshot {
		db.Spec.Backup = nil // the API server refuses it
	}
}

func (s *story) setScaled(db *v1.SampleDB) {
	db.Spec.Storage.WhenScaled = one(s, v1.ScaleRetain, v1.ScaleDelete, v1.ScaleDelete)
}

func (s *story) change(how func(*v1.SampleDB)) {
	if db := s.db(); db != nil {
		change(s.apiServer, kindSampleDB, db, how)
	}
}

func (s *story) edit() {
	s.change(func(db *v1.SampleDB) {
		db.Spec.Instances = int32(1 + s.IntN(3))
		s.setScaled(db)
	})
}

// editStorage makes volumes larger or smaller, or has them in another class.
func (s *story) editStorage() {
	s.change(func(db *v1.SampleDB) {
		db.Spec.Storage.Size = one(s, "1Gi", "2Gi", "4Gi")
		db.Spec.Storage.StorageClassName = one(s, nil, nil, ptr.To("standard"), ptr.To("fast"))
	})
}

func (s *story) editPolicy() {
	s.change(s.setPolicy)
	s.saysDelete()
}

func (s *story) restore() {
	s.change(func(db *v1.SampleDB) {
		if desired.Backup(db) == nil {
			return // the API server refuses it
		}
		s.restores++
		db.Spec.Restore = &v1.InPlaceRestore{
			ID: fmt.Sprintf("r%d", s.restores), Confirm: db.Name, Before: one(s, v1.BeforeKeep, v1.BeforeDelete)}
	})
}

func (s *story) deleteDB() {
	policy := one(s, metav1.DeletePropagationBackground, metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
	if db := s.db(); db != nil && db.DeletionTimestamp == nil {
		s.keeps[db.UID] = policy == metav1.DeletePropagationOrphan
		s.remove(kindSampleDB, modelDB, byUser, policy)
	}
}

func (s *story) deleteDefinition() {
	if db := s.db(); db != nil && db.DeletionTimestamp == nil {
		s.keeps[db.UID] = true
	}
	definition := have[*metav1.PartialObjectMetadata](s.apiServer, kindDefinition, naming.DefinitionSampleDB)
	if definition == nil || definition.DeletionTimestamp != nil {
		return
	}
	at := metav1.NewTime(s.now)
	change(s.apiServer, kindDefinition, definition, func(d *metav1.PartialObjectMetadata) {
		d.DeletionTimestamp, d.Finalizers = &at, []string{"customresourcecleanup"}
	})
	s.remove(kindSampleDB, modelDB, byUser, metav1.DeletePropagationBackground)
}

// endDefinition lets a kind that is being deleted go when none of it is there any more.
func (s *story) endDefinition() {
	definition := have[*metav1.PartialObjectMetadata](s.apiServer, kindDefinition, naming.DefinitionSampleDB)
	if definition != nil && definition.DeletionTimestamp != nil && s.db() == nil {
		change(s.apiServer, kindDefinition, definition,
			func(d *metav1.PartialObjectMetadata) { d.Finalizers = nil })
	}
}

func (s *story) deleteSet() {
	s.remove(kindSet, naming.StatefulSet(modelDB), byUser, one(s, metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan))
}

func (s *story) deletePod() {
	if pods := all[*corev1.Pod](s.apiServer, kindPod); len(pods) > 0 {
		s.stop(one(s, pods...))
	}
}

func (s *story) makeBackup() {
	_ = s.create(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("by-hand-%d", s.version)},
		Spec: v1.DatabaseBackupSpec{SampleDB: modelDB}})
}

func (s *story) deleteBackup() {
	if backups := all[*v1.DatabaseBackup](s.apiServer, kindBackup); len(backups) > 0 {
		s.remove(kindBackup, one(s, backups...).Name, byUser, metav1.DeletePropagationBackground)
	}
}

// DeleteClaim is a user who does without one volume, where another has all.
func (s *story) deleteClaim() {
	claims := all[*corev1.PersistentVolumeClaim](s.apiServer, kindClaim)
	if len(claims) == 0 {
		return
	}
	claim := one(s, claims...)
	d := s.disks[claim.UID]
	spare := d == nil || d.of == nil || s.elsewhere(d.of, claim.UID)
	if _, instance := naming.Ordinal(claim.Name); instance && spare {
		s.remove(kindClaim, claim.Name, byUser, metav1.DeletePropagationBackground)
	}
}

// rebuild is the command that does without the volume of a standby: it asks the API server whether others have its
// data, as the status says it, and whether anything is on it that they have not.
func (s *story) rebuild() {
	db := s.db()
	claims := all[*corev1.PersistentVolumeClaim](s.apiServer, kindClaim)
	if db == nil || len(claims) == 0 || db.Status.Restore != nil && db.Status.Restore.CompletedAt == nil {
		return
	}
	claim, restored := one(s, claims...), ""
	if db.Status.Restore != nil {
		restored = db.Status.Restore.ID
	}
	ordinal, instance := naming.Ordinal(claim.Name)
	name, d := naming.Instance(modelDB, ordinal), s.disks[claim.UID]
	spare := d == nil || d.of == nil || s.elsewhere(d.of, claim.UID)
	if instance && spare && volumes.DataAside(db, name, restored, claim).What == "" {
		s.remove(kindClaim, claim.Name, byRebuild, metav1.DeletePropagationBackground)
	}
}

func (s *story) fallSilent() {
	if names := s.running(); len(names) > 0 {
		s.silent[one(s, names...)] = true
		if s.IntN(2) == 0 {
			for _, name := range names {
				s.silent[name] = true
			}
		}
	}
}

func (s *story) fallsBehind() {
	kinds := []string{kindSampleDB, kindClaim, kindSet, kindPod, kindBackup, kindConfig, kindJob}
	s.fallBehind(one(s, kinds...))
}
