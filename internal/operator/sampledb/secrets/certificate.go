package secrets

import (
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// GivenAuthorities are those that clients are to be told, of certificates that a user gives. Another one comes and one
// goes only when every instance has said what it has: before that some server could not follow one that shows a
// certificate of a new authority, or some client not know one that still shows that of a former.
func GivenAuthorities(told string, members []protocol.Member, answers map[string]protocol.Status) string {
	var said []string
	for _, m := range members {
		answer, known := answers[m.Name]
		if !known || answer.Certificate == nil {
			return told
		}
		said = append(said, answer.Certificate.Authorities)
	}
	return pki.Union(said...)
}

// CertificateServed is the condition CertificateServed, where the spec gives a certificate.
func (s *secretsTopic) CertificateServed() world.Verdict {
	name := s.DB.Spec.TLS.SecretName
	if name == "" {
		return world.Verdict{}
	}
	if s.Stop.Down() {
		return world.NotTold()
	}
	var refused, waits, lacks, unasked []string
	var until time.Time
	for _, m := range s.Config.Members {
		answer, known := s.Seen.Answers[m.Name]
		c := answer.Certificate
		switch {
		case !known:
			unasked = append(unasked, m.Name)
		case c == nil || !c.Mounted:
			lacks = append(lacks, m.Name)
		case c.Refusal != "":
			refused = append(refused, m.Name+shows(c)+": "+c.Refusal)
		case c.Secret != name || c.Waits != "":
			waits = append(waits, m.Name+shows(c)+" "+c.Waits)
		case until.IsZero() || c.NotAfter.Before(until):
			until = c.NotAfter
		}
	}
	switch {
	case len(refused) > 0:
		return world.No(v1.ReasonCertificateRefused, fmt.Sprintf("Secret %s: %s", name, strings.Join(refused, "; ")))
	case len(lacks) > 0:
		return world.No(v1.ReasonCertificatePending, fmt.Sprintf("Secret %s is not in the Pods yet of %s", name,
			strings.Join(lacks, ", ")))
	case len(waits) > 0:
		return world.No(v1.ReasonCertificatePending, fmt.Sprintf("Secret %s: %s", name, strings.Join(waits, "; ")))
	case len(unasked) > 0:
		return world.Unknown("could not be asked: " + strings.Join(unasked, ", "))
	}
	return world.Yes(v1.ReasonCertificateServed,
		fmt.Sprintf("every instance shows clients the certificate of Secret %s, "+
			"valid until %s", name, until.UTC().Format(time.RFC3339)))
}

// CertificateChanges tell which certificate clients are shown, or why not the one that is given.
func CertificateChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionCertificateServed)
	switch {
	case c == nil:
	case c.Reason == v1.ReasonCertificateServed:
		return []world.Event{world.Normal(world.EventCertificateServed, c.Message)}
	case c.Reason == v1.ReasonCertificateRefused:
		return []world.Event{world.Warning(world.EventCertificateRefused, c.Message)}
	}
	return nil
}

// shows says what clients are shown meanwhile.
func shows(c *protocol.CertificateStatus) string {
	if c.Secret == "" {
		return " shows a certificate of the SampleDB's own authority"
	}
	return " shows the former certificate, valid until " + c.NotAfter.UTC().Format(time.RFC3339)
}
