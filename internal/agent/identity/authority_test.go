package identity

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// replace has the Secret of an instance have another authority.
func replace(t *testing.T, i *Identity, authority *pki.Authority) {
	t.Helper()
	key, err := authority.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{naming.KeyCA: authority.CertPEM(), naming.KeyCAKey: key} {
		if err := os.WriteFile(filepath.Join(i.options.Authority, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func both(a, b *pki.Authority) string { return string(a.CertPEM()) + string(b.CertPEM()) }

// An instance takes another authority out of its Secret while it runs, once it is told to trust it, and not before.
func TestAnotherAuthorityIsTakenOnceItIsTrusted(t *testing.T) {
	t.Parallel()
	former, successor := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		i, _, renewals, log := issuedBy(t, former)
		shows := func(when string, issuer *pki.Authority, trusted ...*pki.Authority) {
			t.Helper()
			time.Sleep(2 * renewCheck)
			synctest.Wait()
			certificate, bundle, identity := i.Shown()
			want := []string{}
			for _, a := range trusted {
				want = append(want, a.ID())
			}
			if identity.Issuer != issuer.ID() || !slices.Equal(identity.Trusted, want) ||
				!slices.Equal(pki.KeyIDs(bundle), want) || content(i.run, "ca.crt") != bundle {
				t.Errorf("%s: it shows %s and trusts %v, want %s and %v", when, identity.Issuer, identity.Trusted,
					issuer.ID(), want)
			}
			if shown := pki.Certificates([]byte(content(i.run, "server.crt"))); len(shown) != 1 ||
				!bytes.Equal(shown[0].Raw, certificate) {
				t.Errorf("%s: the server has another certificate", when)
			}
		}
		shows("at first", former, former)
		replace(t, i, successor)
		shows("with a Secret that nobody trusts yet", former, former)
		if renewals.Load() != 0 {
			t.Errorf("it has renewed %d times for nothing", renewals.Load())
		}
		i.Trust(both(former, successor))
		shows("with both trusted", successor, former, successor)
		i.Trust(string(successor.CertPEM()))
		shows("with the new one trusted", successor, successor)
		i.Trust(string(former.CertPEM()))
		shows("told to part from the others", successor, successor)
		if !strings.Contains(log.String(), "not taken") {
			t.Errorf("nothing is said of what is not taken: %s", log)
		}
	})
}

// A Secret that is being replaced, or is half of one and half of another, is read again.
func TestASecretThatIsHalfWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	former, successor := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		i, _, _, _ := issuedBy(t, former)
		i.Trust(both(former, successor))
		if err := os.Remove(filepath.Join(i.options.Authority, naming.KeyCAKey)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * renewCheck)
		if err := os.WriteFile(filepath.Join(i.options.Authority, naming.KeyCAKey), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * renewCheck)
		synctest.Wait()
		if _, _, identity := i.Shown(); identity.Issuer != former.ID() {
			t.Error("it has taken half of a Secret")
		}
		replace(t, i, successor)
		time.Sleep(2 * renewCheck)
		synctest.Wait()
		if _, _, identity := i.Shown(); identity.Issuer != successor.ID() {
			t.Error("it has not read the Secret again")
		}
	})
}
