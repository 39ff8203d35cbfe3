package restore

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// restoreSource finds what a restore is to read. What is not there is a problem.
func (s *restoreTopic) restoreSource(ctx context.Context, x desired.Restore) (desired.Source, error) {
	db, spec := s.DB, x.Wanted
	source := desired.Source{}
	var err error
	switch {
	case x.InPlace != "":
		return s.OwnSource(ctx, spec)
	case spec.Backup != "":
		source, err = s.backupSource(ctx, db, spec.Backup)
		if err == nil && source.Major != 0 && source.Major != s.Config.Major {
			err = otherVersion("the DatabaseBackup %s is of PostgreSQL %d, and spec.version is %d: it can be restored "+
				"only into a new SampleDB with version: %d", spec.Backup, source.Major, s.Config.Major, source.Major)
		}
	case spec.SampleDB != "":
		source.Archive, err = s.sampleSource(ctx, db, spec, s.Config.Major)
	default:
		source.Archive = *spec.Archive
	}
	if err != nil || !desired.IsVolume(source.Archive.Store) {
		return source, err
	}
	return s.volumeSource(ctx, db, source)
}

// OwnSource is the SampleDB's own archive.
func (s *restoreTopic) OwnSource(ctx context.Context, spec v1.RestoreSpec) (desired.Source, error) {
	backup, archives := spec.Backup, s.Archives()
	if at, ok := desired.TargetTime(spec.Target); ok {
		if f := desired.FormerAt(&archives, at); f != nil {
			return desired.Source{}, otherVersion("%s ran PostgreSQL %d at %s, and runs %d now, which a restore in "+
				"place does not change: kubectl toban restore %s --into OTHER --to %s",
				s.DB.Name, f.Version, spec.Target.Time, s.Config.Major, s.DB.Name, spec.Target.Time)
		}
	}
	source := desired.OwnSource(s.DB, s.ArchivePath(), s.Config.Authority)
	if s.Restore != nil { // of one that the operator has begun by itself
		source.AtLeast = s.Restore.ArchiveEnd
	}
	if backup == "" {
		return source, nil
	}
	named, err := s.backupSource(ctx, s.DB, backup)
	if err == nil && named.Snapshot != nil {
		return source, noSource("the DatabaseBackup %s is a snapshot of a volume: create a new SampleDB with "+
			"restoreFrom of it. A restore in place reads the archive", backup)
	}
	own := naming.ArchivePath(s.DB.Namespace, s.DB.Name, string(s.DB.UID))
	if first, _ := naming.FirstArchivePath(named.Archive.Path); err == nil && first == own &&
		named.Archive.Path != source.Archive.Path {
		return source, otherVersion("the DatabaseBackup %s is of PostgreSQL %d, and %s runs %d now, which a restore "+
			"in place does not change: kubectl toban restore %s --into OTHER --backup %s",
			backup, named.Major, s.DB.Name, s.Config.Major, s.DB.Name, backup)
	}
	if at := desired.StorePlace(named.Archive); err == nil && at != desired.PresentStore(s.DB) {
		return source, noSource("the DatabaseBackup %s is in another store than spec.backup.store names, %s: create a "+
			"new SampleDB with restoreFrom of it", backup, at)
	}
	if err == nil && named.Archive.Path != source.Archive.Path {
		err = noSource("the DatabaseBackup %s is in the archive of another SampleDB: create a new SampleDB with "+
			"restoreFrom of it", backup)
	}
	source.Backup = named.Backup
	return source, err
}

// otherVersion is the problem that a restore needs another major version of PostgreSQL.
func otherVersion(format string, args ...any) error {
	return &world.Problem{Reason: v1.ReasonRestoreFailed, Message: fmt.Sprintf(format, args...), Wait: world.WaitUser}
}

// noSource is the problem that there is nothing to restore from.
func noSource(format string, args ...any) error {
	return &world.Problem{Reason: v1.ReasonRestoreSourceNotFound, Message: fmt.Sprintf(format, args...),
		Wait: world.WaitUser}
}

func (s *restoreTopic) backupSource(ctx context.Context, db *v1.SampleDB, name string) (desired.Source, error) {
	backup, err := world.Find(ctx, s.Client, db, name, &v1.DatabaseBackup{})
	switch {
	case err != nil:
		return desired.Source{}, err
	case backup == nil:
		return desired.Source{}, noSource("there is no DatabaseBackup %s in the namespace", name)
	case backup.BySnapshot():
		return snapshotSource(backup)
	case !meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete),
		backup.Status.Archive == nil, backup.Status.ID == "":
		return desired.Source{}, noSource("the DatabaseBackup %s is not complete", name)
	}
	source := desired.Source{
		Archive: *backup.Status.Archive.DeepCopy(), Backup: backup.Status.ID,
		Major: desired.MajorOf(backup.Status.ServerVersion),
	}
	if source.Archive.Claim == "" {
		source.Archive.Claim = naming.Archive(backup.Spec.SampleDB)
	}
	return source, nil
}

// sampleSource is the archive of another SampleDB: of the major version that it ran at the moment of the target, and
// where that is no moment, of the one that is to read it, if there is one.
func (s *restoreTopic) sampleSource(
	ctx context.Context, db *v1.SampleDB, spec v1.RestoreSpec, major int,
) (v1.ArchiveReference, error) {
	name := spec.SampleDB
	if name == db.Name {
		return v1.ArchiveReference{}, noSource("a new SampleDB can't be restored from itself: name its backup, " +
			"or its former archive")
	}
	other, err := world.Find(ctx, s.Client, db, name, &v1.SampleDB{})
	switch {
	case err != nil:
		return v1.ArchiveReference{}, err
	case other == nil:
		return v1.ArchiveReference{}, noSource("there is no SampleDB %s in the namespace", name)
	case desired.Backup(other) == nil:
		return v1.ArchiveReference{}, noSource("the SampleDB %s has no archive: its spec says backup.none", name)
	}
	return archiveOfVersion(other, spec.Target, major)
}

// archiveOfVersion is that archive of a SampleDB which has the target, for a major version.
func archiveOfVersion(other *v1.SampleDB, target *v1.RestoreTarget, major int) (v1.ArchiveReference, error) {
	out, status := desired.ArchiveReference(other), other.Status.Backup
	if status == nil || status.Version == 0 {
		return out, nil // the Pod finds out
	}
	version, former := int(status.Version), (*v1.FormerArchive)(nil)
	if at, isTime := desired.TargetTime(target); isTime {
		former = desired.FormerAt(status, at)
	} else if target != nil && version != major {
		former = desired.FormerOf(status, major)
	}
	if former != nil {
		out.Path, version = former.Path, int(former.Version)
	}
	if version != major {
		return out, otherVersion("spec.version is %d, and what %s had at that moment is of PostgreSQL %d: it can be "+
			"restored only into a new SampleDB with version: %d", major, other.Name, version, version)
	}
	return out, nil
}

// volumeSource finds who has the volume of an archive: the server of the SampleDB that it belongs to, if there is one,
// else the Pod of the restore mounts it. One that is stopped has none.
func (s *restoreTopic) volumeSource(
	ctx context.Context, db *v1.SampleDB, source desired.Source,
) (desired.Source, error) {
	name, ok := strings.CutSuffix(source.Archive.Claim, naming.Archive(""))
	if source.Archive.Claim == "" {
		return source, noSource("restoreFrom.archive is on a volume: its claim must be named, as NAME-archive")
	}
	claim, err := world.Find(ctx, s.Reader, db, source.Archive.Claim, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return source, err
	}
	if claim == nil {
		return source, noSource("there is no PersistentVolumeClaim %s in the namespace", source.Archive.Claim)
	}
	if !ok || name == db.Name {
		return source, nil
	}
	other, err := world.Find(ctx, s.Client, db, name, &v1.SampleDB{})
	if err != nil || other == nil || !desired.OnVolume(other) || other.Status.Stop.Down() {
		return source, err
	}
	config, err := world.Find(ctx, s.Client, db, naming.ConfigMap(name), &corev1.ConfigMap{})
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
