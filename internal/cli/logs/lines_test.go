package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/show"
)

const agentLine = `{"time":"2026-11-25T02:00:00Z","level":"INFO","msg":"restarting the server, as asked"}`

func TestWhoHasLoggedALine(t *testing.T) {
	for line, want := range map[string]string{
		agentLine: sourceAgent,
		"toban: run the agent: the volume is gone":                                   sourceAgent,
		"2026-11-25 02:00:00.000 UTC [7] db=app,user=app,app=,client=local LOG:  ok": sourcePostgreSQL,
		"\tand the second line of a message":                                         sourcePostgreSQL,
		"":                                                                           sourcePostgreSQL,
		`{"timestamp":"2026-11-25 02:00:00.000 UTC","pid":7,"message":"PostgreSQL's"}`: sourcePostgreSQL,
		`{"time":"2026-11-25T02:00:00Z","level":"INFO","msg":"cut`:                     sourcePostgreSQL,
	} {
		if got := sourceOf(line); got != want {
			t.Errorf("%q is of %s, want %s", line, got, want)
		}
	}
}

func TestLogsAreMergedByTime(t *testing.T) {
	log := func(name, role, lines string) *podLog { return newPodLog(name, role, strings.NewReader(lines)) }
	at := func(second int) string { return fmt.Sprintf("2026-11-25T02:00:%02d.5Z ", second) }
	var out bytes.Buffer
	err := mergeLogs([]*podLog{
		log("x-0", "primary", at(1)+"a\n"+at(4)+"d\n"+at(3)+"after d, in its log's order\n"),
		log("x-1", "standby", at(2)+"b\n"+at(2)+"c\n"+at(9)+"the last, without its end"),
		log("x-2", "", ""),
	}, func(l logLine) error { _, err := fmt.Fprintln(&out, l); return err })
	want := "x-0 primary a\nx-1 standby b\nx-1 standby c\nx-0 primary d\nx-0 primary after d, in its log's order\n" +
		"x-1 standby the last, without its end\n"
	if err != nil || out.String() != want {
		t.Errorf("it shows:\n%s%v", out.String(), err)
	}
}

func TestALogThatBreaksOffIsAnErrorAfterTheOthersAreShown(t *testing.T) {
	n := 0
	err := mergeLogs([]*podLog{
		newPodLog("x-0", "", iotest.ErrReader(errors.New("cut"))),
		newPodLog("x-1", "", strings.NewReader("2026-11-25T02:00:00Z a\n2026-11-25T02:00:01Z b\n")),
	}, func(logLine) error { n++; return nil })
	if n != 2 || err == nil || !strings.Contains(err.Error(), "x-0") {
		t.Errorf("%d lines, %v", n, err)
	}
}

// The last lines of the agent are shown, however many of PostgreSQL's come after them.
func TestTheLastLinesAreThoseThatAreAskedFor(t *testing.T) {
	const agent = `{"time":"2026-11-25T02:00:00Z","level":"INFO","msg":"%d"}`
	lines := ""
	for i := range 3 {
		lines += fmt.Sprintf("2026-11-25T02:00:%02dZ "+agent+"\n", i, i)
	}
	for range 5 {
		lines += "2026-11-25T02:00:09Z LOG:  checkpoint\n"
	}
	o := &logsOptions{agent: true, tail: 2}
	for name, c := range map[string]struct {
		from  io.Reader
		error string
	}{
		"whole":   {strings.NewReader(lines), ""},
		"cut off": {io.MultiReader(strings.NewReader(lines), iotest.ErrReader(errors.New("cut"))), "cut"},
	} {
		log := newPodLog("x-0", "", c.from)
		log.keepLast(int(o.tail), o.wants)
		var shown []string
		err := mergeLogs([]*podLog{log}, func(l logLine) error { shown = append(shown, l.Line); return nil })
		if len(shown) != 2 || shown[0] != fmt.Sprintf(agent, 1) || shown[1] != fmt.Sprintf(agent, 2) {
			t.Errorf("%s: it shows %q", name, shown)
		}
		if (err == nil) != (c.error == "") || err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFollowedLogThatIsOpenedAgainShowsNothingTwice(t *testing.T) {
	f := follower{last: map[string]time.Time{}}
	var shown string
	for _, text := range []string{"a b", "a b c", "c d"} { // the log of an instance, as it is opened three times
		lines := "2026-11-25T02:00:00." + strings.ReplaceAll(text, " ", "Z\n2026-11-25T02:00:00.") + "Z\n"
		lines = strings.NewReplacer("a", "1", "b", "2", "c", "3", "d", "4").Replace(lines)
		for log := newPodLog("x-0", "", strings.NewReader(lines)); log.next(); {
			if f.isNew(log.line) {
				shown += log.line.Time.Format(".0")
			}
		}
	}
	if shown != ".1.2.3.4" {
		t.Errorf("it shows %s", shown)
	}
}

func TestTheLogsOfOneSource(t *testing.T) {
	postgres := logLine{Instance: "x-0", Role: "primary", Source: sourcePostgreSQL, Line: "LOG:  ok"}
	agent := logLine{Instance: "x-0", Source: sourceAgent, Line: agentLine}
	for name, c := range map[string]struct {
		options logsOptions
		want    string
	}{
		"both":         {logsOptions{}, "x-0 primary LOG:  ok\nx-0 -       " + agentLine + "\n"},
		"PostgreSQL's": {logsOptions{postgres: true}, "x-0 primary LOG:  ok\n"},
		"the agent's":  {logsOptions{agent: true}, "x-0 -       " + agentLine + "\n"},
		"in JSON": {
			logsOptions{Cluster: cluster.Cluster{Output: show.Output{Format: "json"}}, postgres: true},
			`{"time":"0001-01-01T00:00:00Z","instance":"x-0","role":"primary","source":"postgresql",` +
				`"line":"LOG:  ok"}` + "\n",
		},
	} {
		var out bytes.Buffer
		err := errors.Join(c.options.write(&out, postgres), c.options.write(&out, agent))
		if err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
	if err := (&logsOptions{}).write(failing{}, postgres); err == nil {
		t.Error("a reader that went away is no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
