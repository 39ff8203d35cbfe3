package sampledb

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// restoreSource finds what a restore is to read. What is not there is a problem.
func (r *Reconciler) restoreSource(ctx context.Context, s *scope, x desired.Restore) (desired.Source, error) {
	db, spec := s.db, x.Wanted
	source := desired.Source{}
	var err error
	switch {
	case x.InPlace != "":
		return r.ownSource(ctx, s, spec.Backup)
	case spec.Backup != "":
		source, err = r.backupSource(ctx, db, spec.Backup)
	case spec.SampleDB != "":
		source.Archive, err = r.sampleSource(ctx, db, spec.SampleDB)
	default:
		source.Archive = *spec.Archive
	}
	if err != nil || !desired.IsVolume(source.Archive.Store) {
		return source, err
	}
	return r.volumeSource(ctx, db, source)
}

// ownSource is the SampleDB's own archive, whose volume, if it is on one, has its server.
func (r *Reconciler) ownSource(ctx context.Context, s *scope, backup string) (desired.Source, error) {
	source := desired.Source{Archive: desired.ArchiveReference(s.db)}
	source.Archive.Path = s.archivePath()
	if desired.IsVolume(source.Archive.Store) {
		source.Server, source.Authority = s.db.Name, s.config.Authority
	}
	if backup == "" {
		return source, nil
	}
	named, err := r.backupSource(ctx, s.db, backup)
	if err == nil && named.Archive.Path != source.Archive.Path {
		err = noSource("the DatabaseBackup %s is in the archive of another SampleDB: create a new SampleDB with "+
			"restoreFrom of it", backup)
	}
	source.Backup = named.Backup
	return source, err
}

// noSource is the problem that there is nothing to restore from.
func noSource(format string, args ...any) error {
	return &problem{v1.ReasonRestoreSourceNotFound, fmt.Sprintf(format, args...), waitUser}
}

func (r *Reconciler) backupSource(ctx context.Context, db *v1.SampleDB, name string) (desired.Source, error) {
	backup, err := find(ctx, r.Client, db, name, &v1.DatabaseBackup{})
	switch {
	case err != nil:
		return desired.Source{}, err
	case backup == nil:
		return desired.Source{}, noSource("there is no DatabaseBackup %s in the namespace", name)
	case !meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete),
		backup.Status.Archive == nil, backup.Status.ID == "":
		return desired.Source{}, noSource("the DatabaseBackup %s is not complete", name)
	}
	source := desired.Source{Archive: *backup.Status.Archive.DeepCopy(), Backup: backup.Status.ID}
	if source.Archive.Claim == "" {
		source.Archive.Claim = naming.Archive(backup.Spec.SampleDB)
	}
	return source, nil
}

func (r *Reconciler) sampleSource(ctx context.Context, db *v1.SampleDB, name string) (v1.ArchiveReference, error) {
	if name == db.Name {
		return v1.ArchiveReference{}, noSource("a new SampleDB can't be restored from itself: name its backup, " +
			"or its former archive")
	}
	other, err := find(ctx, r.Client, db, name, &v1.SampleDB{})
	switch {
	case err != nil:
		return v1.ArchiveReference{}, err
	case other == nil:
		return v1.ArchiveReference{}, noSource("there is no SampleDB %s in the namespace", name)
	case desired.Backup(other) == nil:
		return v1.ArchiveReference{}, noSource("the SampleDB %s has no archive: its spec says backup.none", name)
	}
	return desired.ArchiveReference(other), nil
}

// volumeSource finds who has the volume of an archive: the server of the SampleDB that it belongs to, if there is one,
// else the Pod of the restore mounts it.
func (r *Reconciler) volumeSource(ctx context.Context, db *v1.SampleDB, source desired.Source) (desired.Source, error) {
	name, ok := strings.CutSuffix(source.Archive.Claim, naming.Archive(""))
	if source.Archive.Claim == "" {
		return source, noSource("restoreFrom.archive is on a volume: its claim must be named, as NAME-archive")
	}
	claim, err := find(ctx, r.Reader, db, source.Archive.Claim, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return source, err
	}
	if claim == nil {
		return source, noSource("there is no PersistentVolumeClaim %s in the namespace", source.Archive.Claim)
	}
	if !ok || name == db.Name {
		return source, nil
	}
	other, err := find(ctx, r.Client, db, name, &v1.SampleDB{})
	if err != nil || other == nil || !desired.OnVolume(other) {
		return source, err
	}
	config, err := find(ctx, r.Client, db, naming.ConfigMap(name), &corev1.ConfigMap{})
	if err != nil {
		return source, err
	}
	if config == nil {
		return source, noSource("the SampleDB %s is still being created", name)
	}
	parsed, err := desired.ParseConfig(config)
	if err != nil {
		return source, err
	}
	source.Server, source.Authority = name, parsed.Authority
	return source, nil
}
