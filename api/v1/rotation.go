package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PasswordStatus says which password of the application's role is where.
type PasswordStatus struct {
	// How often the password was replaced. It never gets less.
	Epoch int64 `json:"epoch"`

	// Of which epoch the password in the Secret NAME-app is.
	// +optional
	Secret int64 `json:"secret,omitempty"`

	// Which epoch's password the server was given last.
	// +optional
	Server int64 `json:"server,omitempty"`

	// The restore in place after which the server was given it. An earlier state of the data may have an earlier
	// password.
	// +optional
	Restored string `json:"restored,omitempty"`
}

// AuthorityStatus says which of the SampleDB's authorities are trusted, and which one issues certificates.
type AuthorityStatus struct {
	// How often the authority was replaced. It never gets less.
	Epoch int64 `json:"epoch"`

	// Of which epoch the authority is that issues certificates, the one in the Secret NAME-ca.
	// +optional
	Issuer int64 `json:"issuer,omitempty"`

	// Of which epoch the oldest authority is that is trusted.
	// +optional
	Oldest int64 `json:"oldest,omitempty"`

	// For how long two authorities are trusted, before the instances use the new one and again after, in seconds.
	// +optional
	OverlapSeconds int64 `json:"overlapSeconds,omitempty"`

	// Since when all instances have done what the present step asks of them.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Of which epoch the authority in the Secret NAME-ca is known to be.
	// +optional
	Secret int64 `json:"secret,omitempty"`

	// Which epochs ca.crt in the Secret NAME-app is known to have, the first and the last with a "-" between them.
	// Empty is 0 alone.
	// +optional
	App string `json:"app,omitempty"`
}
