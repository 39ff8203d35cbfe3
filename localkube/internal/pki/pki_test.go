package pki

import (
	"crypto/x509"
	"os"
	"testing"
)

func TestAnIssuedCertificateIsGoodForItsSubjectOnly(t *testing.T) {
	store := sample(t)
	cert, _, err := store.load("server")
	if err != nil {
		t.Fatal(err)
	}
	ca, _, err := store.load("ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for host, good := range map[string]bool{"198.18.0.1": true, "kubernetes": true, "198.18.0.2": false} {
		usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: usages})
		if (err == nil) != good {
			t.Errorf("as %s it is verified with: %v", host, err)
		}
	}
	if cert.Subject.CommonName != "someone" || cert.Subject.Organization[0] != "some" {
		t.Errorf("it is for %s", cert.Subject)
	}
}

func TestWhatIsThereIsKeptAndWhatIsMissingIsMade(t *testing.T) {
	store := sample(t)
	before, _ := os.ReadFile(store.Cert("ca"))
	server, _ := os.ReadFile(store.Cert("server"))
	// As if the start had been killed between the key and the certificate.
	if err := os.Remove(store.Cert("server")); err != nil {
		t.Fatal(err)
	}
	makeSample(t, store)
	if after, _ := os.ReadFile(store.Cert("ca")); string(after) != string(before) {
		t.Error("the authority was made again")
	}
	if after, _ := os.ReadFile(store.Cert("server")); len(after) == 0 || string(after) == string(server) {
		t.Error("the missing certificate was not made again")
	}
}

func sample(t *testing.T) Store {
	t.Helper()
	store := Store{Dir: t.TempDir()}
	makeSample(t, store)
	return store
}

func makeSample(t *testing.T, store Store) {
	t.Helper()
	if err := store.Authority("ca"); err != nil {
		t.Fatal(err)
	}
	subject := Subject{Name: "someone", Group: "some", Hosts: []string{"198.18.0.1", "kubernetes"}}
	if err := store.Issue("ca", "server", subject); err != nil {
		t.Fatal(err)
	}
	if err := store.KeyPair("tokens"); err != nil {
		t.Fatal(err)
	}
}
