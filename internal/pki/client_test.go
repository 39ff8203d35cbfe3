package pki

import (
	"bytes"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"
)

const instance = "instance"

// shows is a chain of one certificate that an authority issues.
func shows(t *testing.T, a *Authority) []*x509.Certificate {
	t.Helper()
	leaf, err := a.Issue(instance, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := leaf.TLS()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{certificate}
}

// trusting are pools with an authority.
func trusting(t *testing.T, a *Authority) map[string]*x509.CertPool {
	t.Helper()
	pool, err := Pool(string(a.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*x509.CertPool{instance: pool}
}

func TestAClientIsVerifiedOnceByTheSameAuthorities(t *testing.T) {
	ours := authority(t, seed, "ours", time.Now())
	c, chain, pools := &Client{}, shows(t, ours), trusting(t, ours)
	if err := c.Verify(chain, pools); err != nil {
		t.Fatal(err)
	}
	chain[0].Signature = []byte("broken, which only who verifies it again notices")
	if err := c.Verify(chain, pools); err != nil {
		t.Errorf("it is verified again: %v", err)
	}
	if c.Verify(chain, trusting(t, ours)) == nil {
		t.Error("by other authorities it is not verified again")
	}
	if c.Verify(chain, pools) == nil {
		t.Error("after it was refused, it is let in by what was before")
	}
}

func TestAClientIsRefusedOnAnOpenConnection(t *testing.T) {
	ours := authority(t, seed, "ours", time.Now())
	other := authority(t, bytes.Repeat([]byte{8}, 32), "other", time.Now())
	c, chain, pools := &Client{}, shows(t, ours), trusting(t, ours)
	for name, step := range map[string]struct {
		chain []*x509.Certificate
		pools map[string]*x509.CertPool
	}{
		"when its authority is trusted no longer":    {chain, trusting(t, other)},
		"when its identity is trusted no longer":     {chain, map[string]*x509.CertPool{"operator": pools[instance]}},
		"when another authority vouches for it":      {chain, map[string]*x509.CertPool{instance: x509.NewCertPool()}},
		"when it has shown nothing":                  {nil, pools},
		"when what it shows is of another authority": {shows(t, other), trusting(t, ours)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Verify(chain, pools); err != nil {
				t.Fatal(err)
			}
			if c.Verify(step.chain, step.pools) == nil {
				t.Error("it is let in")
			}
		})
	}
}

func TestAClientIsRefusedWhenItsCertificateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := authority(t, seed, "ours", time.Now())
		c, chain, pools := &Client{}, shows(t, ours), trusting(t, ours)
		if err := c.Verify(chain, pools); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(chain[0].NotAfter))
		if err := c.Verify(chain, pools); err != nil {
			t.Errorf("at the last moment: %v", err)
		}
		time.Sleep(time.Second)
		if c.Verify(chain, pools) == nil {
			t.Error("it is let in with a certificate that has expired")
		}
	})
}

func TestAChainIsValidWhileAllOfItIs(t *testing.T) {
	chain := []*x509.Certificate{
		{NotBefore: now, NotAfter: now.Add(9 * time.Hour)},
		{NotBefore: now.Add(time.Hour), NotAfter: now.Add(8 * time.Hour)},
		{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(99 * time.Hour)},
	}
	v := validityOf(chain)
	for after, valid := range map[time.Duration]bool{
		0: false, time.Hour - 1: false, time.Hour: true, 8 * time.Hour: true, 8*time.Hour + 1: false,
	} {
		if v.has(now.Add(after)) != valid {
			t.Errorf("after %s: %v", after, !valid)
		}
	}
}
