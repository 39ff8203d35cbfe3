package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/postgres"
)

// A server with tablespaces is copied, and copied again while its data is there: each copy has folders of its own, in
// which nothing is yet. A rewind goes on in those that there are.
func TestServersWithTablespacesAreCopiedAndRewound(t *testing.T) {
	all := nodes(t, 2)
	primary, standby := all[0], all[1]
	primary.keepsWAL, standby.keepsWAL = true, true
	space := filepath.Join(filepath.Dir(primary.Data.Volume), "spaces = 1")
	must(t, os.MkdirAll(space, 0o700))
	primary.found()
	primary.do("create tablespace fast location '" + space + "'")
	primary.do("create table there tablespace fast as select i from generate_series(1, 1000) i")
	for range 2 {
		standby.clone(primary)
		standby.process = nil
		standby.follow(primary, 1)
		standby.streams()
		const count = "select count(*) from there"
		standby.eventually("it has the rows", func() bool { return standby.ask(count) == "1000" })
		if standby.ask("select pg_tablespace_location(oid) from pg_tablespace where spcname = 'fast'") ==
			primary.ask("select pg_tablespace_location(oid) from pg_tablespace where spcname = 'fast'") {
			t.Fatal("two servers have the same folder")
		}
		standby.stop(postgres.StopFast)
	}
	standby.process = nil
	standby.follow(primary, 1)
	standby.streams()
	part(primary, standby)
	primary.do("update there set i = -i")
	standby.checkpoint()
	primary.stop(postgres.StopFast)
	must(t, primary.rewind(standby))
	primary.rejoined(standby)
	if sum, want := primary.ask("select sum(i) from there"), standby.ask("select sum(i) from there"); sum != want {
		t.Errorf("the sum is %s, on the other %s", sum, want)
	}
}
