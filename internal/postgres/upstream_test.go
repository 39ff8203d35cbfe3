package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAStandbyWithoutUpstreamFollowsNobodyAndWaitsForNoReader(t *testing.T) {
	settings := Settings{Standby: true, Least: map[string]int{"max_connections": 300}, Synchronous: `ANY 1 ("a","b")`,
		Parameters: map[string]string{"max_standby_streaming_delay": "-1", "max_standby_archive_delay": "-1"}}
	got := example(17).parameters(settings)
	for name, want := range map[string]string{
		"primary_conninfo": "", "primary_slot_name": "", "max_standby_streaming_delay": "0",
		"max_standby_archive_delay": "0", "max_connections": "300", "synchronous_standby_names": `ANY 1 ("a","b")`,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %q, expected %q", name, value, want)
		}
	}
	settings.Upstream = &Upstream{Host: "h", Port: 1, Name: "n", Term: 7}
	got = example(17).parameters(settings)
	if got["max_standby_streaming_delay"] != "-1" ||
		!strings.Contains(got["primary_conninfo"], "sslkey=/run/pg/replication-7.key") {
		t.Errorf("with an upstream it has %q and %q", got["max_standby_streaming_delay"], got["primary_conninfo"])
	}
}

func TestCopiesGoUnderANameThatNoInstanceHas(t *testing.T) {
	info := example(17).keys().copyingInfo(Upstream{Host: "h", Port: 1, Name: "db-1", Term: 7}, nameClone)
	if !strings.Contains(info, "application_name=toban-clone ") ||
		!strings.Contains(info, "sslkey=/run/pg/server.key ") {
		t.Errorf("a clone connects with %q", info)
	}
}

func TestRevokedTermsStayRevoked(t *testing.T) {
	s := &Server{Run: t.TempDir()}
	key := func(term uint64) bool {
		_, err := os.Lstat(filepath.Join(s.Run, keyLink(term)))
		return err == nil
	}
	for _, term := range []uint64{4, 5, 6} {
		if err := s.keys().allow(term); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.keys().allow(6); err != nil {
		t.Fatalf("the link that is there already: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Run, FileKey), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []uint64{6, 3} { // the second one must not bring anything back
		if err := s.Revoke(step); err != nil {
			t.Fatal(err)
		}
		if key(4) || key(5) || !key(6) {
			t.Errorf("after Revoke(%d) there are the keys: 4 %v, 5 %v, 6 %v", step, key(4), key(5), key(6))
		}
		if err := s.keys().allow(5); err == nil || key(5) {
			t.Errorf("after Revoke(%d) term 5 was allowed again (%v)", step, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.Run, FileKey)); err != nil {
		t.Errorf("the key itself is gone: %v", err)
	}
	if err := s.keys().allow(7); err != nil {
		t.Errorf("a newer term: %v", err)
	}
}

// A primary whose only standby has vanished goes on alone when its stream is given up, which is not to take long.
func TestTheOnlyStandbyIsWaitedForLess(t *testing.T) {
	for only, want := range map[bool]string{true: "tcp_user_timeout=3000", false: "tcp_user_timeout=6500"} {
		info := keys("/run").followingInfo(Upstream{Host: "h", Term: 1, Only: only})
		if strings.Count(info, want) != 2 { // at either end
			t.Errorf("only %t: %s", only, info)
		}
	}
}
