package protocol

import "time"

// Certificate is one that a user gives, for the servers to show to clients.
type Certificate struct {
	// Secret is the name of the Secret, for messages; the agent has it mounted.
	Secret string `json:"secret"`
	// Names are those that it must be valid for besides the hosts of the members.
	Names []string `json:"names"`
}

// CertificateStatus is which certificate a server shows to clients. Release 0.1.0 does not say so.
type CertificateStatus struct {
	// Secret is the name of the Secret whose certificate is shown, "" for one of the SampleDB's own authority, and
	// NotAfter until when that is valid.
	Secret   string    `json:"secret,omitempty"`
	NotAfter time.Time `json:"notAfter,omitzero"`
	// Mounted says that the Pod has the Secret that is asked for.
	Mounted bool `json:"mounted,omitempty"`
	// Refusal is a sentence why the certificate in the Secret is not taken, Waits one for what a good one waits.
	Refusal string `json:"refusal,omitempty"`
	Waits   string `json:"waits,omitempty"`
	// Authorities (PEM) are those of the certificate that is shown and of a good one that waits. Only the operator is
	// told them: they are long.
	Authorities string `json:"authorities,omitempty"`
}

// ClientAuthorities (PEM) are all by which clients know the servers: the SampleDB's own, and those of what users give.
func (c Config) ClientAuthorities() string { return c.Authority + c.Given }
