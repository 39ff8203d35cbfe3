package sampledb

import (
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// givenAuthorities are those that clients are to be told, of certificates that a user gives. Another one comes and one
// goes only when every instance has said what it has: before that some server could not follow one that shows a
// certificate of a new authority, or some client not know one that still shows that of a former.
func givenAuthorities(told string, members []protocol.Member, answers map[string]protocol.Status) string {
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

// wantedTrust identifies the authorities that NAME-app is to tell clients besides the SampleDB's own: "" for none.
func (s *secretFacts) wantedTrust() string {
	if s.config.Given == "" {
		return ""
	}
	return desired.Hash(s.config.Given)
}

// certificateServed is the condition CertificateServed, where the spec gives a certificate.
func (s *secretsTopic) certificateServed() verdict {
	name := s.db.Spec.TLS.SecretName
	if name == "" {
		return verdict{}
	}
	if s.stop.Down() {
		return notTold()
	}
	var refused, waits, lacks, unasked []string
	var until time.Time
	for _, m := range s.config.Members {
		answer, known := s.seen.answers[m.Name]
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
		return no(v1.ReasonCertificateRefused, fmt.Sprintf("Secret %s: %s", name, strings.Join(refused, "; ")))
	case len(lacks) > 0:
		return no(v1.ReasonCertificatePending, fmt.Sprintf("Secret %s is not in the Pods yet of %s", name,
			strings.Join(lacks, ", ")))
	case len(waits) > 0:
		return no(v1.ReasonCertificatePending, fmt.Sprintf("Secret %s: %s", name, strings.Join(waits, "; ")))
	case len(unasked) > 0:
		return unknown("could not be asked: " + strings.Join(unasked, ", "))
	}
	return yes(v1.ReasonCertificateServed, fmt.Sprintf("every instance shows clients the certificate of Secret %s, "+
		"valid until %s", name, until.UTC().Format(time.RFC3339)))
}

// certificateChanges tell which certificate clients are shown, or why not the one that is given.
func certificateChanges(old, now v1.SampleDBStatus) []event {
	c := turned(old, now, v1.ConditionCertificateServed)
	switch {
	case c == nil:
	case c.Reason == v1.ReasonCertificateServed:
		return []event{normal(eventCertificateServed, c.Message)}
	case c.Reason == v1.ReasonCertificateRefused:
		return []event{warning(eventCertificateRefused, c.Message)}
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
