package bluegreen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// muchFound is a result with far more than a termination message has room for.
func muchFound(long string) protocol.SidesResult {
	much := protocol.SidesResult{Error: long, Broken: long}
	for i := range 300 {
		much.Differences = append(much.Differences, fmt.Sprint(i, long))
		f := protocol.UpgradeFinding{Reason: fmt.Sprint("Reason", i), Message: long}
		for range 10 {
			f.Objects = append(f.Objects, long)
		}
		much.Refusals = append(much.Refusals, f)
	}
	return much
}

// Whatever a step has found, its result fits into a termination message, is whole, and says why it is not done.
func TestAResultOfSidesFits(t *testing.T) {
	long := strings.Repeat("\"\\<日本>", 2000)
	much := muchFound(long)
	path := filepath.Join(t.TempDir(), "result")
	for name, r := range map[string]protocol.SidesResult{
		"all": much, "an error": {Error: long}, "broken": {Broken: long},
		"differences": {Differences: much.Differences},
		"refusals":    {Refusals: much.Refusals, Tables: 7, Rows: 1 << 40},
		"one refusal": {Refusals: much.Refusals[:1]},
	} {
		want := r
		r.Refusals = append([]protocol.UpgradeFinding{}, r.Refusals...)
		r.Differences = append([]string{}, r.Differences...)
		fitSides(&r)
		if err := pod.Leave(path, &r, &r.Error); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got protocol.SidesResult
		if err := json.Unmarshal(text, &got); err != nil || len(text) > pod.MaxTermination {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		if (got.Error == "") != (want.Error == "") || (got.Broken == "") != (want.Broken == "") ||
			len(want.Refusals) > 0 && (len(got.Refusals) == 0 || got.Refusals[0].Reason != "Reason0") ||
			len(want.Differences) > 0 && len(got.Differences) == 0 || got.Tables != want.Tables ||
			got.Rows != want.Rows {
			t.Errorf("%s: it lacks something: %s", name, text)
		}
	}
}

// A difference of definitions is waited for, and nothing else that is in the way; and not for ever.
func TestADifferenceThatIsUndoneKeepsTheCopy(t *testing.T) {
	differ := InTheWay{Reason: DefinitionsDiffer, Message: "shop: relation app.orders"}
	shared := InTheWay{Reason: RolesDiffer, Message: "role other"}
	noted := InTheWay{Reason: SchemaChanged, Message: "CREATE TABLE t"}
	for name, c := range map[string]struct {
		differ InTheWay
		undone time.Duration
		then   error
		want   error
		after  time.Duration
	}{
		"nothing is in the way":    {differ, 0, nil, nil, 0},
		"it is undone":             {differ, 25 * time.Second, nil, nil, 30 * time.Second},
		"a role is dropped again":  {shared, 25 * time.Second, nil, nil, 30 * time.Second},
		"it is not":                {differ, time.Hour, nil, differ, undoPatience},
		"it is undone with a note": {differ, 25 * time.Second, fmt.Errorf("x: %w", noted), noted, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, told := time.Now(), 0
				look := func() error {
					if time.Since(began) < c.undone {
						return fmt.Errorf("x: %w", c.differ)
					}
					return c.then
				}
				err := untilUndone(t.Context(), look, func(says string) {
					if told++; !strings.Contains(says, c.differ.Message) {
						t.Errorf("it tells %q", says)
					}
				})
				if !errors.Is(err, c.want) || time.Since(began) != c.after || (told > 0) != (c.undone > 0) {
					t.Errorf("after %s it says %v, and has told %d times", time.Since(began), err, told)
				}
			})
		})
	}
}

// A Pod that is told to end while it waits has not found that the upgrade has failed.
func TestWhoEndsWhileItWaitsHasFoundNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := untilUndone(ctx, func() error { return InTheWay{Reason: DefinitionsDiffer} }, func(string) { cancel() })
	if errors.As(err, &InTheWay{}) || !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}

// What is undone with a note closes the way as well: the advice goes by what the server can do.
func TestTheAdviceAboutADifferenceLeavesNoNote(t *testing.T) {
	for major, want := range map[int]bool{16: false, 17: true, 18: true} {
		if got := strings.Contains(undoing(major), "event_triggers = off"); got != want {
			t.Errorf("PostgreSQL %d: %s", major, undoing(major))
		}
	}
}

// What is in the way, and what is broken, is no error that another try may mend.
func TestSidesJudge(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want protocol.SidesResult
	}{
		"done": {nil, protocol.SidesResult{Done: true}},
		"in the way": {fmt.Errorf("x: %w", InTheWay{Reason: "SchemaChanged", Message: "m"}),
			protocol.SidesResult{Refusals: []protocol.UpgradeFinding{{Reason: "SchemaChanged", Message: "m"}}}},
		"ahead": {fmt.Errorf("x: %w", ErrAhead),
			protocol.SidesResult{Broken: "x: " + ErrAhead.Error()}},
		"another": {errors.New("away"), protocol.SidesResult{Error: "away"}},
	} {
		s := newSides(SidesOptions{})
		s.judge(c.err)
		got, _ := json.Marshal(s.result)
		if want, _ := json.Marshal(c.want); string(got) != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	s := newSides(SidesOptions{})
	s.result.Broken = "its slot is gone"
	if s.judge(nil); s.result.Done {
		t.Error("a broken link is done")
	}
}

func TestTheServersKnowTheRoleOfLinks(t *testing.T) {
	if Role != naming.RoleLink {
		t.Errorf("%q and %q", Role, naming.RoleLink)
	}
}

// What a comparison has found is told by the names of the sides, and of many tables the first.
func TestWhatAComparisonHasFound(t *testing.T) {
	s := newSides(SidesOptions{FromGreen: true})
	s.connectSides()
	found := Compared{Tables: 40, Rows: 7, NotCompared: []string{"shop: app.held"}}
	for i := range 30 {
		found.Differ = append(found.Differ, Difference{Database: "shop", Table: fmt.Sprint("app.t", i),
			Serving: 3, Following: 2, OnlyServing: []string{"17", "18"}, OnlyFollowing: []string{"17"}})
	}
	s.compared(found)
	s.judge(nil)
	r := s.result
	if want := "shop: app.t0 has 3 rows on green and 2 on blue; only green has 17, 18; only blue has 17"; r.Done ||
		len(r.Differences) != mostDifferences+1 || r.Differences[0] != want ||
		r.Differences[mostDifferences] != "20 more tables differ" {
		t.Errorf("%+v", r)
	}
	if len(r.Refusals) != 1 || r.Refusals[0].Reason != NotCompared || r.Refusals[0].Objects[0] != "shop: app.held" {
		t.Errorf("%+v", r.Refusals)
	}
}

// A server sends the password to none but one that has proved its name, whatever the name of the database is.
func TestHowASideIsReached(t *testing.T) {
	a := &sideAccess{hosts: []string{"db-0.x", "db-1.x"}, port: 5432, servers: "/run/servers.crt"}
	if text := a.reach("shop"); strings.Contains(text, "password") {
		t.Error(text)
	}
	a.password = "secret"
	text := a.reach(`it's \ x`)
	for _, want := range []string{"host=db-0.x,db-1.x ", "user=toban_link ",
		`dbname='it\'s \\ x' `, "sslmode=verify-full ",
		"sslrootcert='/run/servers.crt' ", "require_auth=scram-sha-256 ", "target_session_attrs=read-write ",
		" password=secret"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// A Pod that can't do its work says why, as an error that another try may mend.
func TestAPodOfSidesWithoutSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	err := Sides(t.Context(), SidesOptions{Work: protocol.SidesPublish,
		Options: pod.Options{Settings: filepath.Join(t.TempDir(), "none"), Termination: path}})
	text, _ := os.ReadFile(path)
	var r protocol.SidesResult
	if unread := json.Unmarshal(text, &r); err == nil || unread != nil || r.Error == "" || r.Done {
		t.Errorf("%v, %v: %s", err, unread, text)
	}
}
