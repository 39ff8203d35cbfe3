package postgres

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what is generated (go test -update writes it anew):\n%s", path, got)
	}
}

func example(major int) *Server {
	return &Server{Programs: Programs{Major: major}, Data: DataDirectory{Volume: "/pgdata"},
		Run: "/run/pg", Listen: "*", Port: 5432}
}

func TestConfigurationFiles(t *testing.T) {
	upstream := &Upstream{
		Host: "db-0.db-instances.ns.svc", Address: "198.18.16.2", Port: 5432, Name: "db-1", Slot: "toban_db_1", Term: 7,
	}
	primary := Settings{
		Name: "db-0", Parameters: map[string]string{"work_mem": "16MB", "Shared_Buffers": "1GB"},
		HBA: []string{"host all all 198.18.0.0/15 trust"},
	}
	primary.Synchronous = `ANY 1 ("db-1","db-2")`
	standby := primary
	standby.Name, standby.Upstream, standby.Least = "db-1", upstream, map[string]int{"max_connections": 200}
	linked := standby
	linked.Closed, linked.Link = true, true
	for name, c := range map[string]struct {
		major    int
		settings Settings
	}{"primary-17": {17, primary}, "standby-15": {15, standby}, "linked-17": {17, linked}} {
		t.Run(name, func(t *testing.T) {
			for file, text := range example(c.major).files(c.settings, "postgres") {
				golden(t, name+"-"+file, text)
			}
		})
	}
}

// Slots come along to a standby from PostgreSQL 17 on, where there is a primary to follow, by a slot of its own.
func TestSlotsOfALinkComeAlong(t *testing.T) {
	upstream, bare := &Upstream{Host: "db-0", Slot: "toban_db_1"}, &Upstream{Host: "db-0"}
	for name, c := range map[string]struct {
		major    int
		settings Settings
		along    bool
	}{
		"with a link":      {17, Settings{Upstream: upstream, Link: true}, true},
		"of 18":            {18, Settings{Upstream: upstream, Link: true}, true},
		"of 16":            {16, Settings{Upstream: upstream, Link: true}, false},
		"without a link":   {17, Settings{Upstream: upstream}, false},
		"without a slot":   {17, Settings{Upstream: bare, Link: true}, false},
		"following nobody": {17, Settings{Standby: true, Link: true}, false},
		"a primary":        {17, Settings{Link: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			// The link's needs come before what a user says.
			c.settings.Parameters = map[string]string{"hot_standby_feedback": "off"}
			all := example(c.major).parameters(c.settings)
			along := all["sync_replication_slots"] == "on" && all["hot_standby_feedback"] == "on" &&
				strings.HasSuffix(all["primary_conninfo"], " dbname=postgres")
			some := all["sync_replication_slots"] != "" || all["hot_standby_feedback"] != "off" ||
				strings.Contains(all["primary_conninfo"], "dbname")
			if along != c.along || some != c.along {
				t.Errorf("the parameters are %v", all)
			}
		})
	}
}

func TestUsersParametersNeverReplaceTheAgents(t *testing.T) {
	settings := Settings{Parameters: map[string]string{
		"port": "1", "SSL": "off", "Archive_Command": "rm -rf /", "recovery_target_time": "now",
		"fsync": "off", "work_mem": "1MB",
	}}
	got := example(17).parameters(settings)
	for name, want := range map[string]string{
		"port": "5432", "ssl": "on", "archive_command": "", "recovery_target_time": "",
		"fsync": "on", "work_mem": "1MB",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, expected %q", name, got[name], want)
		}
	}
}

// Whatever a user asks for, a server whose volume gets full takes no writes and needs little room.
func TestAServerThatSparesRoom(t *testing.T) {
	s := &Server{Programs: Programs{Major: 17}}
	all := s.parameters(Settings{
		Parameters: map[string]string{"max_wal_size": "8GB", "default_transaction_read_only": "off"},
		Sparing:    &Sparing{MaxWAL: 32 << 20, TempFiles: 12 << 20},
	})
	for name, want := range map[string]string{
		"default_transaction_read_only": "on", "max_wal_size": "32MB", "min_wal_size": "32MB",
		"temp_file_limit": "12288kB",
	} {
		if all[name] != want {
			t.Errorf("%s is %q, want %q", name, all[name], want)
		}
	}
}

func TestValuesCanNotLeaveTheirQuotes(t *testing.T) {
	for value, want := range map[string]string{
		"plain":         "plain",
		"it's":          "it''s",
		`back\slash`:    `back\\slash`,
		"a\nport = '1'": "a port = ''1''",
	} {
		if got := quote(value); got != want {
			t.Errorf("%q became %q, expected %q", value, got, want)
		}
	}
}

func TestRaiseKeepsWhatIsEnough(t *testing.T) {
	all := map[string]string{"max_connections": "50", "max_worker_processes": "20"}
	raise(all, map[string]int{"max_connections": 100, "max_worker_processes": 8, "max_wal_senders": 10})
	for name, want := range map[string]string{
		"max_connections": "100", "max_worker_processes": "20", "max_wal_senders": "10",
	} {
		if all[name] != want {
			t.Errorf("%s is %s, expected %s", name, all[name], want)
		}
	}
}

func TestRejectionPicksPostgreSQLsWords(t *testing.T) {
	for name, c := range map[string]struct{ messages, want string }{
		"a wrong value": {
			"2026-01-01 00:00:00.000 GMT [1] LOG:  invalid value for parameter \"work_mem\": \"much\"\n" +
				"2026-01-01 00:00:00.000 GMT [1] HINT:  Valid units for this parameter are \"B\".\n" +
				"2026-01-01 00:00:00.000 GMT [1] FATAL:  configuration file \"x\" contains errors\n",
			`invalid value for parameter "work_mem": "much"; Valid units for this parameter are "B".`},
		"something else": {"first\nsecond\nthird\n", "second; third"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rejection(c.messages); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

func TestLastWordsOfAServer(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"fatal with its cause": {[]string{
			"x [1] LOG:  could not bind IPv4 address \"127.0.0.1\": Address already in use",
			"x [1] FATAL:  could not create any TCP/IP sockets", "x [1] LOG:  database system is shut down"},
			`could not create any TCP/IP sockets (could not bind IPv4 address "127.0.0.1": Address already in use)`},
		"fatal alone": {
			[]string{"x LOG:  starting PostgreSQL 17", "x FATAL:  no space left on device"}, "no space left on device",
		},
		"of the process that it stops for": {[]string{
			"x [66] LOG:  redo starts at 0/A6E7E58",
			"x [66] FATAL:  could not extend file \"base/5/16392\": No space left on device",
			"x [66] HINT:  Check free disk space.",
			"x [67] FATAL:  could not write init file", "x [62] LOG:  startup process (PID 66) exited with exit code 1",
			"x [62] LOG:  shutting down due to startup process failure", "x [62] LOG:  database system is shut down"},
			`could not extend file "base/5/16392": No space left on device`},
		"of another where that one was killed": {[]string{
			"x [67] FATAL:  terminating connection",
			"x [62] LOG:  startup process (PID 66) was terminated by signal 9: Killed"},
			"terminating connection"},
		"a file that the postmaster can't write, and no fatal message": {[]string{
			"x [1] LOG:  could not write file \"postmaster.opts\": No space left on device",
			"x [1] LOG:  database system is shut down"},
			`could not write file "postmaster.opts": No space left on device`},
		"nothing": {nil, "it said nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastWords(c.lines); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

// The folder of a tablespace is missing only where the server was replaying that one was made.
func TestTheFolderOfATablespaceIsMissing(t *testing.T) {
	fatal := `x [66] FATAL:  directory "/pgdata/tablespaces/a b" does not exist`
	hint := "x [66] HINT:  Create this directory for the tablespace before restarting the server."
	redo := `x [66] CONTEXT:  WAL redo at 0/3014110 for Tablespace/CREATE: 16384 "/pgdata/tablespaces/a b"`
	end := "x [62] LOG:  startup process (PID 66) exited with exit code 1"
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"it is":             {[]string{"x [66] LOG:  redo", fatal, hint, redo, end}, "/pgdata/tablespaces/a b"},
		"another directory": {[]string{`x [1] FATAL:  data directory "/pgdata/data" does not exist`}, ""},
		"a client's":        {[]string{`x [9] ERROR:  directory "/x" does not exist`, "x [9] STATEMENT:  create"}, ""},
		"nothing":           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missingTablespace(c.lines); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

func TestParseControl(t *testing.T) {
	text, err := os.ReadFile("testdata/controldata-17.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseControl(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.SystemIdentifier != "7512345678901234567" || c.State != "in production" || c.Timeline != 3 ||
		c.Least["max_connections"] != 100 || c.Least["max_prepared_transactions"] != 0 || len(c.Least) != 5 {
		t.Errorf("read %+v", c)
	}
	if want := strings.Repeat("0123456789abcdef", 4); hex.EncodeToString(c.Nonce) != want {
		t.Errorf("the nonce is %x, want %s", c.Nonce, want)
	}
	if _, err := parseControl("nonsense"); err == nil {
		t.Error("nonsense was taken for control data")
	}
}
