package postgres

import (
	"os"
	"testing"
	"time"
)

// A session of a client is known by its title, and so are the server's own processes, whatever they are called.
func TestWhoseTitleIsAClients(t *testing.T) {
	for title, want := range map[string]bool{
		"postgres: db-0: app shop 10.1.2.3(40312) authentication": true,
		"postgres: db-0: app shop [local] startup":                true,
		"postgres: app shop ::1(40312)":                           true,
		"postgres: db-0: walsender app 10.1.2.3(40312) startup":   true,
		"postgres: db-0: autoprewarm leader":                      false,
		"postgres: db-0: logical replication launcher":            false,
		"postgres: db-0: parallel worker for PID 4711":            false,
		"postgres: db-0: checkpointer":                            false,
		"/usr/lib/postgresql/17/bin/postgres -D /pgdata (1)":      false,
	} {
		if got := isClient(title); got != want {
			t.Errorf("%q: %t", title, got)
		}
	}
}

// How old a process is, is known to a tick, and one that is gone counts as old: it is not there to be ended.
func TestHowOldAProcessIs(t *testing.T) {
	began := time.Now()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	process, err := os.StartProcess("/bin/cat", []string{"cat"}, &os.ProcAttr{Files: []*os.File{read, nil, nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Kill(); _, _ = process.Wait() }()
	if isOlder(process.Pid, time.Hour) {
		t.Error("it is said to be older than it is")
	}
	for !isOlder(process.Pid, 50*time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("it does not get older")
		}
		time.Sleep(time.Millisecond)
	}
	if age := time.Since(began); age < 40*time.Millisecond {
		t.Errorf("it is said to be 50 ms old after %s", age)
	}
	if !isOlder(1<<22+1, time.Hour) {
		t.Error("one that is gone is said to be young")
	}
}
