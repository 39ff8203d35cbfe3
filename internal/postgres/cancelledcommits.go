package postgres

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

// cancelledCommit ends the line that a server logs when a client cancels a commit that waits for standbys
// (SyncRepWaitForLSN in syncrep.c of PostgreSQL 15 to 19; statement_timeout does not count there). lc_messages is ours,
// so that it is in English.
const cancelledCommit = "WARNING:  canceling wait for synchronous replication due to user request"

// longestLine is how much of a line is looked at, in bytes: whoever logs a long one does not fill the memory.
const longestLine = 4 << 10

// CommitLog passes a server's log on, and counts in it the commits that were cancelled while they waited for standbys:
// their clients were told that they have succeeded, though they may be on the primary alone. Who may write to the log
// can make it count too many: RAISE WARNING has the same words. One whose log_min_messages is above warning logs none.
type CommitLog struct {
	to    io.Writer
	count atomic.Int64

	mutex sync.Mutex // several programs may write at once
	line  []byte     // what there is of the last line
}

// NewCommitLog passes on to a writer.
func NewCommitLog(to io.Writer) *CommitLog { return &CommitLog{to: to} }

// Cancelled is how many there were since the log is read.
func (l *CommitLog) Cancelled() int64 { return l.count.Load() }

// Write passes on what a server writes.
func (l *CommitLog) Write(p []byte) (int, error) {
	l.look(p)
	return l.to.Write(p)
}

// look counts the lines that p ends.
func (l *CommitLog) look(p []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.keep(p)
			return
		}
		l.keep(p[:end])
		if bytes.HasSuffix(l.line, []byte(cancelledCommit)) && l.line[0] != '\t' { // a tab begins what goes on
			l.count.Add(1)
		}
		l.line, p = l.line[:0], p[end+1:]
	}
}

// keep adds to the line. The end of one that is too long is not looked at.
func (l *CommitLog) keep(p []byte) {
	l.line = append(l.line, p[:min(len(p), longestLine-len(l.line))]...)
}
