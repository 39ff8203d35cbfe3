package postgres

import (
	"strings"
	"syscall"
	"testing"
)

func TestTitlesOfProcesses(t *testing.T) {
	for title, want := range map[string]string{
		"postgres: db-1: checkpointer":                                                             "checkpointer",
		"postgres: db-1: checkpointer app 10.0.0.7(5462) idle":                                     "",
		"postgres: db-1: app app 10.0.0.7(5462) idle waiting for 0/40526E8":                        "waits",
		"postgres: db-1: app app 10.0.0.7(5462) COMMIT waiting for 1A/FF000028":                    "waits",
		"postgres: db-1: app app 10.0.0.7(5462) UPDATE waiting":                                    "",
		"postgres: db-1: startup waiting for 000000010000000000000003":                             "",
		"postgres: db-1: walsender standby 10.0.0.8(4000) streaming 0/300014":                      "sender sends only",
		"postgres: db-1: walsender standby [local] streaming 0/300014":                             "sender sends only",
		"postgres: db-1: walsender standby 10.0.0.8(4000) sending backup \"b\"":                    "sender",
		"postgres: db-1: walsender app shop 10.0.0.8(4000) streaming 0/300014":                     "sender",
		"postgres: db-1: walsender app shop 10.0.0.8(4000) INSERT waiting for 0/300014":            "sender waits",
		"postgres: db-1: walsender app 10.0.0.8(4000) idle":                                        "sender",
		"postgres: db-1: walsender app 10.0.0.8(4000)":                                             "sender",
		"postgres: db-1: app shop 10.0.0.8(4000) streaming 0/300014":                               "",
		"postgres: db-1: walsender \u00a0 shop 10.0.0.8(4000) streaming 0/300014":                  "sender",
		"postgres: db-1: io worker 0":                                                              "io worker",
		"postgres: db-1: io worker":                                                                "io worker",
		"postgres: db-1: io worker 10.0.0.8(4000)":                                                 "",
		"/usr/lib/postgresql/17/bin/postgres -D /volume/data":                                      "",
		"postgres: db-1: background writer":                                                        "",
		"postgres: db-1: walsender streaming 0/1 10.0.0.8(4000) INSERT waiting for 0/300014 again": "sender",
	} {
		var is []string
		if isCheckpointer(title) {
			is = append(is, "checkpointer")
		}
		if isIOWorker(title) {
			is = append(is, "io worker")
		}
		if isSender(title) {
			is = append(is, "sender")
		}
		if waitsForStandbys(title) {
			is = append(is, "waits")
		}
		if sendsOnly(title) {
			is = append(is, "sends only")
		}
		if got := strings.Join(is, " "); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
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
