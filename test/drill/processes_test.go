package main

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestAProcessIsKnownByItsArguments(t *testing.T) {
	cases := map[string]struct {
		args               []string
		postmaster, server bool
	}{
		"the postmaster": {[]string{"/usr/lib/postgresql/17/bin/postgres", "-D", "/pgdata/data"}, true, true},
		"a child":        {[]string{"postgres: drill-0: checkpointer "}, false, true},
		"the agent":      {[]string{"/opt/toban/toban", "agent", "--name", "drill-0"}, false, false},
		"one that asks":  {[]string{"/usr/lib/postgresql/17/bin/postgres", "-C", "port"}, false, false},
		"a kernel's":     {nil, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := process{args: c.args}
			if p.postmaster() != c.postmaster || p.server() != c.server {
				t.Errorf("postmaster %t, server %t", p.postmaster(), p.server())
			}
		})
	}
}

func TestOurOwnProcessBelongsToNoPod(t *testing.T) {
	if inPod(os.Getpid(), "") || inPod(os.Getpid(), "50ca210a") {
		t.Error("it was taken for a Pod's")
	}
	if _, err := podProcesses("no-such-uid"); err == nil {
		t.Error("a Pod that is not there has processes")
	}
	if len(arguments(os.Getpid())) == 0 || idInside(os.Getpid()) == 0 {
		t.Error("it has no arguments or no id")
	}
}

func TestOnlyAnErrorIsCertainlyNoCommit(t *testing.T) {
	failure := func(severity string) error { return &pgconn.PgError{SeverityUnlocalized: severity} }
	cases := map[string]struct {
		err    error
		warned bool
		want   Outcome
	}{
		"no error":               {nil, false, Acked},
		"a commit with warning":  {nil, true, Unknown},
		"refused":                {failure("ERROR"), false, Failed},
		"the session is ended":   {failure("FATAL"), false, Unknown},
		"the connection is lost": {errors.New("EOF"), false, Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := session{warned: c.warned}
			if got := s.outcome(c.err); got != c.want {
				t.Errorf("outcome = %s, want %s", got, c.want)
			}
		})
	}
}
