package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"
)

var (
	now  = time.Date(2030, 2, 3, 4, 5, 6, 0, time.UTC)
	seed = bytes.Repeat([]byte{7}, 32)
)

func TestDerive(t *testing.T) {
	root := []byte("a root secret of at least 32 bytes")
	first := Derive(root, "id", "purpose", 32)
	for name, c := range map[string]struct {
		got  []byte
		same bool
	}{
		"the same again":                   {Derive(root, "id", "purpose", 32), true},
		"another root":                     {Derive([]byte("another"), "id", "purpose", 32), false},
		"another id":                       {Derive(root, "id2", "purpose", 32), false},
		"another purpose":                  {Derive(root, "id", "purpose2", 32), false},
		"id and purpose split differently": {Derive(root, "idp", "urpose", 32), false},
		"id and purpose exchanged":         {Derive(root, "purpose", "id", 32), false},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.got) != 32 || bytes.Equal(c.got, first) != c.same {
				t.Errorf("got %x, the first was %x", c.got, first)
			}
		})
	}
	if got := Derive(root, "id", "purpose", 5); len(got) != 5 {
		t.Errorf("5 bytes wanted, got %d", len(got))
	}
	// As RFC 5869 has it, with the id as salt: all passwords that there are depend on it.
	if want := []byte{0xb7, 0xd9, 0x26, 0x39}; !bytes.Equal(first[:4], want) {
		t.Errorf("what is derived has changed: %x, want %x", first[:4], want)
	}
}

func TestAuthorityOfASeed(t *testing.T) {
	first := authority(t, seed, "toban shop/x", now)
	for name, c := range map[string]struct {
		other               *Authority
		sameKey, sameInFull bool
	}{
		"the same parameters":       {authority(t, seed, "toban shop/x", now), true, true},
		"the same, but later":       {authority(t, seed, "toban shop/x", now.Add(time.Hour)), true, false},
		"the same under a new name": {authority(t, seed, "toban shop/y", now), true, false},
		"another seed":              {authority(t, bytes.Repeat([]byte{8}, 32), "toban shop/x", now), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := first.key.Equal(c.other.key); got != c.sameKey {
				t.Errorf("the key is the same: %t", got)
			}
			if got := bytes.Equal(first.CertPEM(), c.other.CertPEM()); got != c.sameInFull {
				t.Errorf("the certificate is the same: %t", got)
			}
			if got := first.Vouches(c.other.CertPEM()); got != c.sameKey {
				t.Errorf("it vouches for it: %t", got)
			}
		})
	}
}

func TestAuthorityVouchesForNothingElse(t *testing.T) {
	a := authority(t, seed, "a", now)
	l := leaf(t, a, nil)
	for name, text := range map[string][]byte{
		"nothing":                     nil,
		"no PEM":                      []byte("hoge"),
		"PEM of no certificate":       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hoge")}),
		"a leaf that it has issued":   l.CertPEM,
		"its certificate cut in half": a.CertPEM()[:100],
	} {
		t.Run(name, func(t *testing.T) {
			if a.Vouches(text) {
				t.Error("it vouches for it")
			}
		})
	}
}

// The instances read the authority from files.
func TestAuthoritySurvivesPEM(t *testing.T) {
	a := authority(t, seed, "a", now)
	key, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseAuthority(a.CertPEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	if !a.key.Equal(read.key) || !bytes.Equal(a.CertPEM(), read.CertPEM()) {
		t.Error("it is another one")
	}
	if err := verify(t, leaf(t, read, nil), a, x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("what it issues is not trusted: %v", err)
	}
	if _, err := ParseAuthority(authority(t, []byte("other"), "a", now).CertPEM(), key); err == nil {
		t.Error("a certificate is taken with the key of another")
	}
}

func TestLeaf(t *testing.T) {
	a := authority(t, seed, "a", now)
	l := leaf(t, a, []string{"x-0.x-instances.shop.svc", "localhost", "10.0.0.7", "fd00::7"})
	for name, c := range map[string]struct {
		by    *Authority
		usage x509.ExtKeyUsage
		host  string
		at    time.Time
		ok    bool
	}{
		"as a server":               {a, x509.ExtKeyUsageServerAuth, "", now, true},
		"as a client":               {a, x509.ExtKeyUsageClientAuth, "", now, true},
		"as anything else":          {a, x509.ExtKeyUsageCodeSigning, "", now, false},
		"by its name":               {a, x509.ExtKeyUsageServerAuth, "x-0.x-instances.shop.svc", now, true},
		"by its other name":         {a, x509.ExtKeyUsageServerAuth, "localhost", now, true},
		"by its address":            {a, x509.ExtKeyUsageServerAuth, "10.0.0.7", now, true},
		"by its IPv6 address":       {a, x509.ExtKeyUsageServerAuth, "fd00::7", now, true},
		"by the name of another":    {a, x509.ExtKeyUsageServerAuth, "x-1.x-instances.shop.svc", now, false},
		"by the address of another": {a, x509.ExtKeyUsageServerAuth, "10.0.0.8", now, false},
		"against another authority": {
			authority(t, []byte("other"), "a", now), x509.ExtKeyUsageServerAuth, "", now, false,
		},
		"where the clock is a bit behind": {a, x509.ExtKeyUsageServerAuth, "", now.Add(-skew / 2), true},
		"before it was issued":            {a, x509.ExtKeyUsageServerAuth, "", now.Add(-2 * skew), false},
		"just before its end": {
			a, x509.ExtKeyUsageServerAuth, "", now.Add(LeafLifetime - time.Minute), true,
		},
		"after its end": {a, x509.ExtKeyUsageServerAuth, "", now.Add(LeafLifetime + time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := certificate(t, l).Verify(x509.VerifyOptions{
				Roots: pool(t, c.by), KeyUsages: []x509.ExtKeyUsage{c.usage}, DNSName: c.host, CurrentTime: c.at,
			})
			if (err == nil) != c.ok {
				t.Errorf("accepted: %t (%v), want %t", err == nil, err, c.ok)
			}
		})
	}
	if got := certificate(t, l).Subject.CommonName; got != "toban:instance" {
		t.Errorf("its identity is %s", got)
	}
	if _, err := l.TLS(); err != nil {
		t.Errorf("crypto/tls can't use it: %v", err)
	}
}

// Whoever holds a leaf's key can't issue more.
func TestALeafIsNoAuthority(t *testing.T) {
	a := authority(t, seed, "a", now)
	l := leaf(t, a, nil)
	pair, err := l.TLS()
	if err != nil {
		t.Fatal(err)
	}
	forger := &Authority{cert: pair.Leaf, key: privateKeyOf(t, pair)}
	forged, err := forger.Issue("toban:operator", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	intermediates := x509.NewCertPool()
	intermediates.AddCert(pair.Leaf)
	_, err = certificate(t, forged).Verify(x509.VerifyOptions{
		Roots: pool(t, a), Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: now,
	})
	if err == nil {
		t.Error("what a leaf has issued is trusted")
	}
}

func TestTwoLeavesAreTwo(t *testing.T) {
	a := authority(t, seed, "a", now)
	first, second := certificate(t, leaf(t, a, nil)), certificate(t, leaf(t, a, nil))
	if first.SerialNumber.Cmp(second.SerialNumber) == 0 {
		t.Error("they have the same serial number")
	}
	if bytes.Equal(first.RawSubjectPublicKeyInfo, second.RawSubjectPublicKeyInfo) {
		t.Error("they have the same key")
	}
}

// Renewed after half of its life, so that there is as much time again to notice
// where that fails.
func TestRenewal(t *testing.T) {
	l := leaf(t, authority(t, seed, "a", now), nil)
	at := l.RenewAt()
	if before, after := at.Sub(l.NotBefore), l.NotAfter.Sub(at); before != after {
		t.Errorf("renewed %s after its beginning and %s before its end", before, after)
	}
	if c := certificate(t, l); !l.NotBefore.Equal(c.NotBefore) || !l.NotAfter.Equal(c.NotAfter) {
		t.Errorf("it is valid from %s to %s and says from %s to %s", c.NotBefore, c.NotAfter, l.NotBefore, l.NotAfter)
	}
}

func TestPool(t *testing.T) {
	first, second := authority(t, seed, "a", now), authority(t, []byte("other"), "b", now)
	both, err := Pool(string(first.CertPEM()), string(second.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*Authority{"the first": first, "the second": second} {
		if _, err := certificate(t, leaf(t, a, nil)).Verify(x509.VerifyOptions{
			Roots: both, CurrentTime: now,
		}); err != nil {
			t.Errorf("%s is not trusted: %v", name, err)
		}
	}
	if _, err := Pool(string(first.CertPEM()), "hoge"); err == nil {
		t.Error("what is not PEM was left out without a word")
	}
}

func authority(t *testing.T, seed []byte, name string, notBefore time.Time) *Authority {
	t.Helper()
	a, err := NewAuthority(seed, name, notBefore)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func leaf(t *testing.T, a *Authority, names []string) Leaf {
	t.Helper()
	l, err := a.Issue("toban:instance", slices.Clone(names), now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func certificate(t *testing.T, l Leaf) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(l.CertPEM)
	if block == nil {
		t.Fatal("the certificate is not PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pool(t *testing.T, a *Authority) *x509.CertPool {
	t.Helper()
	p, err := Pool(string(a.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func verify(t *testing.T, l Leaf, by *Authority, usage x509.ExtKeyUsage) error {
	t.Helper()
	_, err := certificate(t, l).Verify(x509.VerifyOptions{
		Roots: pool(t, by), KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now,
	})
	return err
}

func privateKeyOf(t *testing.T, pair tls.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("the key is %T", pair.PrivateKey)
	}
	return key
}
