package postgres

import (
	"syscall"
	"testing"
)

func TestTitlesOfProcesses(t *testing.T) {
	for title, want := range map[string]struct{ checkpointer, waits bool }{
		"postgres: db-1: checkpointer":                                                    {checkpointer: true},
		"postgres: db-1: checkpointer app 10.0.0.7(54620) idle":                           {},
		"postgres: db-1: app app 10.0.0.7(54620) idle waiting for 0/40526E8":              {waits: true},
		"postgres: db-1: app app 10.0.0.7(54620) COMMIT waiting for 1A/FF000028":          {waits: true},
		"postgres: db-1: app app 10.0.0.7(54620) UPDATE waiting":                          {},
		"postgres: db-1: startup waiting for 000000010000000000000003":                    {},
		"postgres: db-1: walsender toban_replication 10.0.0.8(40000) streaming 0/3000148": {},
		"/usr/lib/postgresql/17/bin/postgres -D /volume/data":                             {},
		"postgres: db-1: background writer":                                               {},
	} {
		if isCheckpointer(title) != want.checkpointer || waitsForStandbys(title) != want.waits {
			t.Errorf("%q: checkpointer %v, waits %v", title, isCheckpointer(title), waitsForStandbys(title))
		}
	}
}

func TestSignalsThatAreStillToBeTaken(t *testing.T) {
	term := uint64(1) << (uint(syscall.SIGTERM) - 1)
	for status, want := range map[string]uint64{
		"Name:\tpostgres\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n": 0,
		"SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n":                                        term,
		"SigPnd:\t0000000000004000\nShdPnd:\t0000000000000000\n":                                        term,
		"": 0,
	} {
		if got := pendingSignals(status); got != want {
			t.Errorf("%q has %x pending, want %x", status, got, want)
		}
	}
}
