package running

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// spaces makes folders of tablespaces: somebody has made one on the primary, and PostgreSQL wants it to be on each
// instance.
type spaces struct {
	// below is the folder that they have to be in: the last words of a server, which name them, have words of clients
	// in them.
	below string
	log   *slog.Logger
}

// makeMissing makes the folder of a tablespace that a server has ended for, and says whether it did.
func (m spaces) makeMissing(process Process) (made bool) {
	folder := process.MissingTablespace()
	if folder == "" {
		return false
	}
	if folder != filepath.Clean(folder) || !strings.HasPrefix(folder, m.below+"/") {
		m.log.Error("the folder of a tablespace is missing: such a folder is made only in "+m.below, "folder", folder)
		return false
	}
	if _, err := os.Lstat(folder); err == nil {
		return false
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		m.log.Error("the folder of a tablespace is missing, and can't be made", "folder", folder, "error", err.Error())
		return false
	}
	m.log.Info("the folder of a tablespace was missing, and is made", "folder", folder)
	return true
}
