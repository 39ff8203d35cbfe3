package agent

import (
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

// The operator alone is told the authorities of the certificate that clients are shown, or of one that waits.
func TestTheOperatorIsToldTheAuthorities(t *testing.T) {
	a := &Agent{status: status.New(protocol.Status{})}
	a.reportCertificate(protocol.CertificateStatus{Secret: "shop-tls", Mounted: true, Authorities: "PEM"})
	said := a.status.Get()
	if c := said.Certificate; c == nil || c.Secret != "shop-tls" || c.Authorities != "" {
		t.Errorf("others are told %+v", c)
	}
	if c := a.withAuthorities(said).Certificate; c == nil || c.Secret != "shop-tls" || c.Authorities != "PEM" {
		t.Errorf("the operator is told %+v", c)
	}
}
