package take

import (
	"errors"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres/sql"
)

// ErrNoIncrement says that a server, or the archive, can't say what has changed since a backup.
// A full one can be taken.
var ErrNoIncrement = errors.New("no incremental backup can be taken")

// Parent is the backup that the next one of a term history may be the change from: its last one. It is false
// where that is, with those that it is the change from, as many as are wanted between two full ones, or where
// something of them is not there.
func Parent(c book.Catalogue, history []ha.TermStart, every int) (format.Backup, bool) {
	last := ""
	for _, b := range c.Backups {
		if c.In(b, history) {
			last = b.ID
		}
	}
	if last == "" {
		return format.Backup{}, false
	}
	chain, err := c.Chain(last)
	if err != nil || len(chain) >= every {
		return format.Backup{}, false
	}
	return chain[len(chain)-1], true
}

// refusedIncrement says that a server can't tell what has changed: it has no summaries of the WAL since the parent,
// which it has not made or has removed, does not go on with its WAL, or begins before the parent ended, as a standby
// may (PrepareForIncrementalBackup in basebackup_incremental.c: all of it "object not in prerequisite state").
func refusedIncrement(err error) bool {
	own := sql.Error(err)
	return own != nil && own.Code == "55000" && !strings.Contains(own.Message, "was promoted")
}
