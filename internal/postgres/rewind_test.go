package postgres

import "testing"

// What keeps a rewind from its source keeps a copy from it too, but for what a server that was reached refuses to this
// session: a copy comes as another kind of one, and may get in.
func TestARewindThatDidNotReachItsSource(t *testing.T) {
	const to = `pg_rewind: error: connection to server at "10.1.2.3", port 5432 failed: `
	for messages, is := range map[string]bool{
		to + "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n": true,
		to + "timeout expired\n":                                                                        true,
		to + "server closed the connection unexpectedly\n":                                              true,
		to + "FATAL:  the database system is starting up\n":                                             true,
		to + "FATAL:  the database system is shutting down\n":                                           true,
		to + "FATAL:  sorry, too many clients already\n":                                                false,
		to + "FATAL:  database \"postgres\" is not accepting\n":                                         false,
		to + "SSL error: certificate verify failed\n":                                                   true,
		`pg_rewind: error: could not translate host name "x-0.x" to address: Name or service not known`: true,
		"pg_rewind: error: could not fetch file list: FATAL:  terminating connection due to administrator command\n" +
			"server closed the connection unexpectedly\n": true,
		"pg_rewind: error: could not fetch file list: server closed the connection unexpectedly\n": true,
		"pg_rewind: error: could not find previous WAL record at 0/60568B8":                        false,
		"": false,
	} {
		if got := unreached(messages); got != is {
			t.Errorf("%q: unreached is %t", messages, got)
		}
	}
}
