package postgres

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A commit whose wait was cancelled is counted by the server's own line, however the log comes in pieces; the same
// words in a statement that goes over lines, or within a line, are none. All is passed on.
func TestCancelledCommitsAreCounted(t *testing.T) {
	const cancelled = "2026-11-29 09:00:00.000 UTC [42] WARNING:  canceling wait for synchronous replication due to " +
		"user request\n"
	const words = "WARNING:  canceling wait for synchronous replication due to user request"
	text := cancelled +
		"2026-11-29 09:00:00.000 UTC [42] DETAIL:  The transaction has already committed locally, but might not have " +
		"been replicated to the standby.\n" +
		"2026-11-29 09:00:01.000 UTC [42] LOG:  statement: select 1,\n\t" + words + "\n" +
		"2026-11-29 09:00:01.000 UTC [42] LOG:  statement: select '" + words + "'\n" +
		"2026-11-29 09:00:02.000 UTC [43] WARNING:  canceling the wait for synchronous replication and terminating " +
		"connection due to administrator command\n" +
		strings.Repeat("x", 3*longestLine) + words + "\n\n" +
		strings.Replace(cancelled, "WARNING:  ", "WARNING:  01000: ", 1) +
		words + "\n" // without a log_line_prefix
	for name, read := range map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"by halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		var passed bytes.Buffer
		log := NewCommitLog(&passed, 7)
		if _, err := io.Copy(log, read); err != nil {
			t.Fatal(err)
		}
		if got := log.Cancelled(); got != 7+3 || passed.String() != text {
			t.Errorf("%s: %d were counted, passed on are %d of %d bytes", name, got, passed.Len(), len(text))
		}
	}
}
