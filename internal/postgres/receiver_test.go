package postgres

import "testing"

func TestReceiversAreKnownByTheirTitle(t *testing.T) {
	for shown, want := range map[string]bool{
		"postgres: walreceiver ":                             true,
		"postgres: db-1: walreceiver streaming 0/3000148":    true,
		"postgres: db-1: walreceiver":                        true,
		"postgres: db-1: startup recovering 000000010000000": false,
		"postgres: db-1: app shop 10.0.0.1(5001) idle":       false,
		"/usr/lib/postgresql/17/bin/postgres -D walreceiver": false,
		"": false,
	} {
		if got := isReceiver(shown); got != want {
			t.Errorf("%q: %v", shown, got)
		}
	}
}

func TestWhatBringsSlotsAlongIsKnownByItsTitle(t *testing.T) {
	for shown, want := range map[string]bool{
		"postgres: slotsync worker ":                   true,
		"postgres: db-1: slotsync worker ":             true,
		"postgres: db-1: walreceiver":                  false,
		"postgres: db-1: app slotsync 10.0.0.1(5001) ": false,
		"slotsync worker":                              false,
	} {
		if got := isSlotSync(shown); got != want {
			t.Errorf("%q: %v", shown, got)
		}
	}
}
