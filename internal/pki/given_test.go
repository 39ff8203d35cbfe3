package pki_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
)

// What may not be shown is refused with a sentence that says why.
func TestACertificateThatIsGivenIsChecked(t *testing.T) {
	names := []string{"x.shop.svc", "x-0.x-instances.shop.svc", "db.example.com", "192.0.2.7", "*.db.example.com"}
	have := []string{"x.shop.svc", "*.x-instances.shop.svc", "db.example.com", "192.0.2.7", "*.db.example.com"}
	root, other := pkitest.NewRoot(t, "root"), pkitest.NewRoot(t, "other")
	between := root.Intermediate(t, "between")
	good := root.Issue(t, have)
	_, ed25519Key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed := pkitest.NewRootOf(t, "ed25519", ed25519Key)
	now := time.Now()
	with := func(change func(g *pki.Given)) pki.Given {
		g := good
		change(&g)
		return g
	}
	without := func(name string) pki.Given {
		return root.Issue(t, slices.DeleteFunc(slices.Clone(have), func(n string) bool { return n == name }))
	}
	const unled = "does not lead to an authority"
	for name, c := range map[string]struct {
		given pki.Given
		at    time.Time
		want  string // of the sentence, "" where it is taken
	}{
		"it fits":            {good, now, ""},
		"with a chain":       {between.Issue(t, have), now, ""},
		"without its chain":  {pkitest.WithoutChain(between.Issue(t, have)), now, unled},
		"no certificate":     {with(func(g *pki.Given) { g.Certificate = nil }), now, "tls.crt is missing"},
		"no key":             {with(func(g *pki.Given) { g.Key = nil }), now, "tls.key is missing"},
		"no authority":       {with(func(g *pki.Given) { g.Authority = nil }), now, "ca.crt is missing"},
		"the key of another": {with(func(g *pki.Given) { g.Key = without("").Key }), now, "tls.key is not the key"},
		"no PEM":             {with(func(g *pki.Given) { g.Certificate = []byte("hoge") }), now, "not PEM"},
		"another authority":  {with(func(g *pki.Given) { g.Authority = other.PEM }), now, unled},
		"no PEM in ca.crt":   {with(func(g *pki.Given) { g.Authority = []byte("hoge") }), now, "no certificate in"},
		"an authority too long": {
			with(func(g *pki.Given) { g.Authority = []byte(strings.Repeat("x", 40<<10)) }), now, "40960 bytes",
		},
		"a name is missing":      {without("x.shop.svc"), now, "not valid for x.shop.svc"},
		"no name of an instance": {without("*.x-instances.shop.svc"), now, "not valid for x-0.x-instances.shop.svc"},
		"an address is missing":  {without("192.0.2.7"), now, "not valid for 192.0.2.7"},
		"a star is missing":      {without("*.db.example.com"), now, "not valid for *.db.example.com"},
		"it has expired":         {good, now.Add(100 * 24 * time.Hour), "has expired"},
		"it is not valid yet":    {good, now.Add(-100 * 24 * time.Hour), "not valid before"},
		"signed with Ed25519":    {ed.Issue(t, have), now, "Ed25519"},
	} {
		t.Run(name, func(t *testing.T) {
			shown, err := c.given.Check(names, c.at)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if err == nil && (!strings.Contains(string(shown.PEM), "PRIVATE KEY") || len(shown.Authority) == 0) {
				t.Errorf("what may be shown is %+v", shown)
			}
		})
	}
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pkitest.NewRootOf(t, "p384", key).Issue(t, have).Check(names, now); err != nil {
		t.Errorf("one of another curve: %v", err)
	}
}

// libpq follows a chain to an authority that has signed itself.
func TestAnAuthorityThatHasNotSignedItselfIsNone(t *testing.T) {
	between := pkitest.NewRoot(t, "root").Intermediate(t, "between")
	given := between.Issue(t, []string{"x"})
	given.Authority = between.PEM
	_, err := given.Check([]string{"x"}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "ca.crt the root") {
		t.Errorf("got %v", err)
	}
}

func TestAUnionDependsOnNothingButTheCertificates(t *testing.T) {
	a, b := string(pkitest.NewRoot(t, "a").PEM), string(pkitest.NewRoot(t, "b").PEM)
	if pki.Union(a, b, a) != pki.Union("# for people\n"+b+a) || pki.Union("", "hoge") != "" {
		t.Error("the same certificates are another text")
	}
	for name, c := range map[string]struct {
		text, other string
		want        bool
	}{
		"one of two": {a, a + b, true}, "both": {b + a, a + b, true}, "one that is not there": {b, a, false},
		"none": {"", a, true}, "one in none": {a, "", false},
	} {
		if got := pki.Within(c.text, c.other); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A server is known by our own authority, or by its name and the authority of what is given; not by that alone.
func TestHowDatabasesAreKnown(t *testing.T) {
	own, err := pki.NewAuthority([]byte(strings.Repeat("s", 32)), "own", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	roots, err := pki.Pool(string(own.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := own.Issue("toban:instance", []string{"elsewhere"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := leaf.TLS()
	if err != nil {
		t.Fatal(err)
	}
	users := pkitest.NewRoot(t, "users")
	company, theirs := string(users.PEM), func(name string) *x509.Certificate {
		return pkitest.Leaf(t, users.Issue(t, []string{name}))
	}
	for name, c := range map[string]struct {
		given, host string
		shows       *x509.Certificate
		known       bool
	}{
		"ours":                                 {"", "h", ours.Leaf, true},
		"ours, where one is given":             {company, "h", ours.Leaf, true},
		"the one that is given":                {company, "h", theirs("h"), true},
		"one of its authority, another name":   {company, "h", theirs("i"), false},
		"one of its authority, without a name": {company, "", theirs("h"), false},
		"one of an authority that is not told": {"", "h", theirs("h"), false},
	} {
		t.Run(name, func(t *testing.T) {
			own := func() (*x509.CertPool, error) { return roots, nil }
			config, err := pki.DatabaseTLS(leaf.TLS, own, "toban:instance", c.given)
			if err != nil {
				t.Fatal(err)
			}
			state := pkitest.State("", c.shows)
			if err := pki.ForHost(config, c.host).VerifyConnection(state); (err == nil) != c.known {
				t.Errorf("it is known: %v, want %t", err, c.known)
			}
		})
	}
}
