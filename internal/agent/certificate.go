package agent

import (
	"time"

	"toban.dev/internal/protocol"
)

// reportCertificate says which certificate clients are shown. The authorities are left to whom the operator asks: they
// are too long for what instances tell each other many times a second.
func (a *Agent) reportCertificate(said protocol.CertificateStatus) {
	authorities := said.Authorities
	a.authorities.Store(&authorities)
	said.Authorities = ""
	a.status.Change(func(s *protocol.Status) { s.Certificate = &said })
}

// withAuthorities adds them to a status for the operator.
func (a *Agent) withAuthorities(s protocol.Status) protocol.Status {
	if said := a.authorities.Load(); said != nil && s.Certificate != nil {
		full := *s.Certificate
		full.Authorities = *said
		s.Certificate = &full
	}
	return s
}

// forOperator adds to a status what only the operator wants to know.
func (a *Agent) forOperator(s protocol.Status) protocol.Status {
	s = a.withAuthorities(s)
	s.Idle = a.idle.Lasts(time.Now())
	return s
}
