package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Of what a newer release asks, a part must not be taken for the whole: a question whether a vote would be given is not
// one for the vote.
func TestARequestThatIsNotUnderstoodIsRefused(t *testing.T) {
	a := &API{Ask: func(context.Context, func(uint64) machine.Event) (machine.Effect, error) {
		return nil, errors.New("it was taken for understood")
	}}
	for name, c := range map[string]struct {
		path string
		body string
	}{
		"a vote":           {protocol.PathVote, `{"term":9,"candidate":"db-1.b","voter":"db-0.a","onlyIf":"noon"}`},
		"a position of it": {protocol.PathVote, `{"term":9,"position":{"term":8,"lsn":1,"line":2}}`},
		"a record":         {protocol.PathRecord, `{"leader":"db-1","expires":7}`},
		"a quorum of it":   {protocol.PathRecord, `{"leader":"db-1","record":{"term":9,"now":{"weights":[3]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
			asked.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{
				{Subject: pkix.Name{CommonName: naming.IdentityInstance}},
			}}
			a.routes().ServeHTTP(answer, asked)
			if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "unknown field") {
				t.Errorf("the answer is %d, %s", answer.Code, answer.Body)
			}
		})
	}
}
