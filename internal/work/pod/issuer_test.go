package pod

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// put writes a file of a Secret or a ConfigMap.
func put(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// idsOf are the ids of authorities.
func idsOf(authorities []*pki.Authority) (ids []string) {
	for _, a := range authorities {
		ids = append(ids, a.ID())
	}
	return ids
}

// A Pod that runs for hours goes through a rotation of the authority: it trusts what it is told to, and shows a
// certificate of the authority that its Secret has.
func TestAPodThatRunsFollowsTheAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		former := agenttest.NewAuthority(t)
		time.Sleep(time.Second) // an authority of the same time would be the same
		successor := agenttest.NewAuthority(t)
		folder, run := agenttest.Folder(t, former), t.TempDir()
		own, err := NewIssuer(folder, naming.IdentityBackup)
		if err != nil {
			t.Fatal(err)
		}
		if err := own.Files(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		check := func(when string, issuer *pki.Authority, trusted ...*pki.Authority) {
			t.Helper()
			time.Sleep(2 * filesChecked)
			synctest.Wait()
			want := idsOf(trusted)
			text, err := os.ReadFile(filepath.Join(run, "ca.crt"))
			if got := pki.KeyIDs(string(text)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: it trusts %v, %v, want %v", when, got, err, want)
			}
			leaf, err := own.current()
			if err != nil {
				t.Fatal(err)
			}
			shown := pki.Certificates(leaf.CertPEM)[0]
			if err := shown.CheckSignatureFrom(pki.Certificates(issuer.CertPEM())[0]); err != nil {
				t.Errorf("%s: its certificate is of another authority: %v", when, err)
			}
			text, err = os.ReadFile(filepath.Join(run, "tls.crt"))
			if err != nil || string(text) != string(leaf.CertPEM) {
				t.Errorf("%s: the file has another certificate: %v", when, err)
			}
			if own.Trusts(shown) != slices.Contains(trusted, issuer) {
				t.Errorf("%s: who has such a certificate is trusted: %v", when, own.Trusts(shown))
			}
		}
		check("without a word about what is trusted", former, former)
		put(t, folder, naming.KeyTrusted, slices.Concat(former.CertPEM(), successor.CertPEM()))
		check("with both trusted", former, former, successor)
		key, err := successor.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		put(t, folder, naming.KeyCA, successor.CertPEM())
		check("with half of a Secret", former, former, successor)
		put(t, folder, naming.KeyCAKey, key)
		check("with the new Secret", successor, former, successor)
		put(t, folder, naming.KeyTrusted, successor.CertPEM())
		check("with the new one alone", successor, successor)
	})
}
