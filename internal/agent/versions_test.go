package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

func TestLimitsAreThoseThatAllOthersHaveSaid(t *testing.T) {
	var members []protocol.Member
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		members = append(members, protocol.Member{Name: name})
	}
	p := newPeers("db-0", nil, func() {})
	p.members = func() []protocol.Member { return members }
	a := &Agent{peers: p}
	if got := a.limits(); got != ha.OwnLimits() {
		t.Errorf("before anybody is heard they are %+v", got)
	}
	for name, limits := range map[string]ha.Limits{
		"db-1": {Silence: time.Hour, Fence: time.Minute},
		"db-2": {Fence: time.Millisecond},
		"db-3": {Silence: 9 * time.Hour}, // no member
	} {
		p.hear(answer{status: protocol.Status{Name: name, Election: protocol.Election{Limits: limits}}, at: time.Now()})
	}
	if got := a.limits(); got.Silence != time.Hour || got.Fence != time.Millisecond {
		t.Errorf("they are %+v", got)
	}
}

// Of what a newer release asks, a part must not be taken for the whole: a question whether a vote would be given is not
// one for the vote.
func TestARequestThatIsNotUnderstoodIsRefused(t *testing.T) {
	a := &Agent{tasks: make(chan func(context.Context))}
	ended, end := context.WithCancel(t.Context()) // who does take it for understood waits for the role loop no longer
	end()
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		body   string
	}{
		"a vote":           {a.handleVote, `{"term":9,"candidate":"db-1.b","voter":"db-0.a","onlyIf":"noon"}`},
		"a position of it": {a.handleVote, `{"term":9,"position":{"term":8,"lsn":1,"line":2}}`},
		"a record":         {a.handleRecord, `{"leader":"db-1","expires":7}`},
		"a quorum of it":   {a.handleRecord, `{"leader":"db-1","record":{"term":9,"now":{"weights":[3]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			c.handle(answer, httptest.NewRequestWithContext(ended, http.MethodPost, "/", strings.NewReader(c.body)))
			if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "unknown field") {
				t.Errorf("the answer is %d, %s", answer.Code, answer.Body)
			}
		})
	}
}
