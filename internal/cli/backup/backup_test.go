package backup

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
)

func TestWhenABackupIsRemovedIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		retention v1.RetentionSpec
		spec      v1.DatabaseBackupSpec
		want      string
	}{
		"the default":    {v1.RetentionSpec{}, v1.DatabaseBackupSpec{}, "when there are 7 newer ones that"},
		"fewer are kept": {v1.RetentionSpec{Count: 2}, v1.DatabaseBackupSpec{}, "when there are 2 newer ones that"},
		"days too": {v1.RetentionSpec{Days: 30}, v1.DatabaseBackupSpec{},
			"asked for and no moment of the last 30 days needs it. To keep it: kubectl patch databasebackup x-1 -n y "},
		"it is pinned":  {v1.RetentionSpec{}, v1.DatabaseBackupSpec{Keep: true}, ""},
		"it is no copy": {v1.RetentionSpec{}, v1.DatabaseBackupSpec{Method: v1.MethodVolumeSnapshot}, ""},
	} {
		db, b := &v1.SampleDB{}, &v1.DatabaseBackup{Spec: c.spec}
		b.Name, b.Namespace = "x-1", "y"
		db.Spec.Backup = &v1.BackupSpec{Retention: c.retention}
		if got := removedWhen(db, b); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
