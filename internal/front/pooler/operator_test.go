package pooler

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// bounced is what PgBouncer answers about its pools.
func bounced(active, waiting string) []map[string]string {
	return []map[string]string{
		{"database": "app", "sv_active": active, "cl_waiting": waiting},
		{"database": authDatabase, "sv_active": "0", "cl_waiting": "2"},
		{"database": consoleDatabase, "sv_active": "1", "cl_waiting": "1"}, // our own
	}
}

func TestWhatAPoolerTellsTheOperator(t *testing.T) {
	for name, c := range map[string]struct {
		held  bool
		pools []map[string]string
		err   error
		want  protocol.PoolTells
	}{
		"clients are served": {false, bounced("3", "1"), nil, protocol.PoolTells{Active: 3}},
		"clients wait while they are held, one to be known": {true, bounced("0", "1"), nil,
			protocol.PoolTells{Held: true, Waiting: 3}},
		"PgBouncer does not answer":     {true, nil, errors.New("no"), protocol.PoolTells{}},
		"PgBouncer says something else": {true, bounced("0", ""), errors.New("no"), protocol.PoolTells{}},
	} {
		o := operator{
			state: func() State { return State{Held: c.held} },
			ask: func(_ context.Context, command string) ([]map[string]string, error) {
				if command != "SHOW POOLS" {
					t.Errorf("it asks %q", command)
				}
				if c.pools == nil {
					return nil, c.err
				}
				return c.pools, nil
			},
		}
		got, err := o.tells(t.Context())
		if (err != nil) != (c.err != nil) || err == nil && got != c.want {
			t.Errorf("%s: it tells %+v, %v", name, got, err)
		}
	}
}

// An answer comes when something else is true than was heard, or after a while.
func TestAPoolerAnswersTheOperatorWhenSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, waiting := time.Now(), "0"
		o := operator{
			state: func() State { return State{Held: true} },
			ask: func(context.Context, string) ([]map[string]string, error) {
				if time.Since(began) > 7*time.Second {
					waiting = "1"
				}
				return bounced("0", waiting), nil
			},
		}
		first, err := o.await(t.Context(), nil)
		if err != nil || time.Since(began) != 0 || first.Waiting != 2 {
			t.Errorf("the first answer is %+v, %v, after %s", first, err, time.Since(began))
		}
		second, err := o.await(t.Context(), &first)
		took := time.Since(began)
		if err != nil || second.Waiting != 3 || took < 7*time.Second || took > 8*time.Second {
			t.Errorf("the second answer is %+v, %v, after %s", second, err, took)
		}
		began = time.Now().Add(-8 * time.Second)
		third, err := o.await(t.Context(), &second)
		if took := time.Since(began) - 8*time.Second; err != nil || third != second || took != protocol.WaitingWaits {
			t.Errorf("the third answer is %+v, %v, after %s", third, err, took)
		}
	})
}

// Nobody is answered where the database never sleeps.
func TestAPoolerThatNobodyAsksTrustsNobody(t *testing.T) {
	o := operator{authority: func() string { return "" }}
	if pools, err := o.clientCAs(); err == nil || len(pools) > 0 {
		t.Errorf("it trusts %v, %v", pools, err)
	}
}

// Who was trusted when the connection was opened, and is not any more, gets no answer on it.
func TestAPoolerAnswersNobodyWhoIsNotTrustedAnyMore(t *testing.T) {
	first, other := anAuthority(t, 1), anAuthority(t, 2)
	leaf, err := first.Issue(naming.IdentityOperator, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trusts := string(first.CertPEM())
	o := operator{authority: func() string { return trusts }}
	asked := 0
	handler := o.trusted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	ask := func() int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, protocol.PathWaiting, nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{pki.Certificates(leaf.CertPEM)[0]}}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer.Code
	}
	if code := ask(); code != http.StatusOK || asked != 1 {
		t.Errorf("the operator gets %d", code)
	}
	for name, now := range map[string]string{"another authority": string(other.CertPEM()), "none": ""} {
		trusts = now
		if code := ask(); code != http.StatusForbidden || asked != 1 {
			t.Errorf("with %s, it gets %d", name, code)
		}
	}
}

// anAuthority is one of a seed.
func anAuthority(t *testing.T, seed byte) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(bytes.Repeat([]byte{seed}, 32), "test", time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
