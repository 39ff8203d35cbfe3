package keep

import (
	"strings"

	"toban.dev/internal/archive/format"
)

// DeleteBatch is how many objects are deleted at once.
const DeleteBatch = 100

// Batches are names to delete one batch after the other, in their order. A backup.json goes alone: as long as it is
// there all of its backup must be. A batch is of one backup, or of none.
func Batches(names []string) [][]string {
	var out [][]string
	var batch []string
	flush := func() {
		if len(batch) > 0 {
			out, batch = append(out, batch), nil
		}
	}
	for _, name := range names {
		alone := strings.HasSuffix(name, "/"+format.FileBackup) || strings.HasSuffix(name, "/"+format.FileLineage)
		if alone || len(batch) == DeleteBatch || len(batch) > 0 && !sameBackup(batch[0], name) {
			flush()
		}
		batch = append(batch, name)
		if alone {
			flush()
		}
	}
	flush()
	return out
}

// sameBackup says that two objects are of the same backup, or both of none.
func sameBackup(a, b string) bool {
	idOfA, _ := format.BackupOf(a)
	idOfB, _ := format.BackupOf(b)
	return idOfA == idOfB
}
