package identity

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// stage is an instance whose Pod has a user's Secret.
type stage struct {
	*testing.T
	*Identity
	secret   string
	config   protocol.Config
	report   atomic.Pointer[protocol.CertificateStatus]
	renewals atomic.Int64
}

// given are the names that the certificate must have.
var given = []string{"x.shop.svc", "x-0.host"}

// said is what the agent reports.
func (s *stage) said() protocol.CertificateStatus { return *s.report.Load() }

func begin(t *testing.T, config protocol.Config) *stage {
	t.Helper()
	s := &stage{T: t, secret: filepath.Join(t.TempDir(), "shop-tls"), config: config}
	s.config.Members = []protocol.Member{{Name: "x-0", Host: "x-0.host"}}
	if err := os.Mkdir(s.secret, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	s.Identity, err = New(Options{
		Name: "x-0", Authority: agenttest.Folder(t, agenttest.NewAuthority(t)), Run: t.TempDir(),
		Given: filepath.Dir(s.secret), Log: slog.New(slog.DiscardHandler),
		Report: func(c protocol.CertificateStatus) { s.report.Store(&c) },
	}, s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.Renewed = func() { s.renewals.Add(1) }
	go func() { _ = s.Show(t.Context()) }()
	synctest.Wait()
	return s
}

// wants is a config with which the Secret is asked for.
func wants(known string) protocol.Config {
	return protocol.Config{
		Certificate: &protocol.Certificate{Secret: "shop-tls", Names: []string{"x.shop.svc"}}, Given: known,
	}
}

// put writes the Secret as the kubelet does, and waits until it has been looked at.
func (s *stage) put(g pki.Given) {
	s.Helper()
	for key, content := range map[string][]byte{"tls.crt": g.Certificate, "tls.key": g.Key, "ca.crt": g.Authority} {
		if err := os.WriteFile(filepath.Join(s.secret, key), content, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.pass(showInterval)
}

func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) tell(config protocol.Config) {
	config.Members = s.config.Members
	s.Follow(config)
	synctest.Wait()
}

// shows is the certificate that a server with the file would show.
func (s *stage) shows() tls.Certificate {
	s.Helper()
	path := filepath.Join(s.run, postgres.FileClients)
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		s.Fatal(err)
	}
	return pair
}

func (s *stage) expect(what, secret, refusal, waits string) {
	s.Helper()
	says := func(said, want string) bool { return strings.Contains(said, want) && (said == "") == (want == "") }
	if s.said().Secret != secret || !says(s.said().Refusal, refusal) || !says(s.said().Waits, waits) {
		s.Errorf("%s: it says %+v", what, s.said())
	}
	shown := s.shows().Leaf
	if !bytes.Equal(s.ForClients(), shown.Raw) {
		s.Errorf("%s: it takes another one for what clients are shown", what)
	}
	users := shown.Subject.CommonName == "given"
	if users != (secret != "") || !shown.NotAfter.Equal(s.said().NotAfter) {
		s.Errorf("%s: clients are shown %s until %s, and it says %+v", what, shown.Subject, shown.NotAfter, s.said())
	}
}

func TestOtherNamesAreIssuedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, protocol.Config{ServerNames: []string{"x"}})
		before := s.shows().Leaf
		s.tell(protocol.Config{ServerNames: []string{"x", "db.example.com", "192.0.2.7"}})
		for _, name := range []string{"x", "db.example.com", "192.0.2.7", "x-0.host"} {
			if err := s.shows().Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		if s.renewals.Load() != 1 {
			t.Errorf("the server is told %d times", s.renewals.Load())
		}
		s.tell(protocol.Config{ServerNames: []string{"x"}})
		if s.shows().Leaf.VerifyHostname("db.example.com") == nil {
			t.Error("it has a name that is not wanted any more")
		}
		s.pass(time.Hour)
		if s.renewals.Load() != 2 || before.SerialNumber.Cmp(s.shows().Leaf.SerialNumber) == 0 {
			t.Errorf("the server is told %d times", s.renewals.Load())
		}
	})
}

func TestAGivenCertificateIsShownWhenClientsKnowItsAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, wants(""))
		s.expect("the Secret is empty", "", "tls.crt is missing", "")
		root := pkitest.NewRoot(t, "root")
		s.put(root.Issue(t, given))
		s.expect("nobody knows the authority", "", "", "until its authority is in ca.crt")
		if s.said().Authorities != pki.Union(string(root.PEM)) {
			t.Errorf("the operator is told %q", s.said().Authorities)
		}
		s.tell(wants(string(root.PEM)))
		s.expect("clients are being told", "", "", "had time to read")
		s.pass(spread)
		s.expect("they have been told", "shop-tls", "", "")
		s.put(root.Issue(t, given))
		s.expect("another one of the same authority", "shop-tls", "", "")
		if s.renewals.Load() != 2 {
			t.Errorf("the server is told %d times", s.renewals.Load())
		}
		other := pkitest.NewRoot(t, "other")
		s.put(other.Issue(t, given))
		s.expect("one of another authority", "shop-tls", "", "until its authority is in ca.crt")
		both := pki.Union(string(root.PEM), string(other.PEM))
		if s.said().Authorities != both {
			t.Error("the operator is not told both authorities")
		}
		s.tell(wants(both))
		s.pass(spread)
		s.expect("clients know both", "shop-tls", "", "")
		if s.said().Authorities != pki.Union(string(other.PEM)) {
			t.Error("the operator is told a former authority")
		}
		s.tell(protocol.Config{})
		s.expect("none is given any more", "", "", "")
	})
}

func TestABadCertificateLeavesTheFormer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := pkitest.NewRoot(t, "root")
		s := begin(t, wants(string(root.PEM)))
		s.put(root.IssueUntil(t, given, time.Now().Add(24*time.Hour)))
		s.expect("clients knew the authority when the agent started", "shop-tls", "", "")
		before := s.shows().Leaf
		s.put(root.Issue(t, given[:1]))
		s.expect("a name is missing", "shop-tls", "not valid for x-0.host", "")
		s.put(pki.Given{})
		s.expect("the Secret is gone", "shop-tls", "tls.crt is missing", "")
		if !s.shows().Leaf.Equal(before) || s.renewals.Load() != 1 {
			t.Errorf("clients are shown another one, and the server is told %d times", s.renewals.Load())
		}
		s.pass(25 * time.Hour)
		s.expect("the former has expired", "", "tls.crt is missing", "")
		s.put(root.Issue(t, given))
		s.expect("it is mended", "shop-tls", "", "")
	})
}

func TestAPodWithoutTheSecretSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := wants("")
		config.Certificate.Secret = "another"
		s := begin(t, config)
		s.expect("another Secret is wanted", "", "", "")
		if s.said().Mounted {
			t.Error("it says that it has it")
		}
	})
}
