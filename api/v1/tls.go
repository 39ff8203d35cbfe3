package v1

// TLSSpec says by which certificate clients know the PostgreSQL servers.
type TLSSpec struct {
	// Further names and addresses by which clients call the servers, such as that of a LoadBalancer. The servers'
	// certificate has them besides those of the Services. A change restarts nothing and ends no session.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Names []ServerName `json:"names,omitempty"`

	// A Secret of the type kubernetes.io/tls with the certificate that clients are shown in place of Toban's own:
	// tls.crt, tls.key and ca.crt, as cert-manager writes them. docs/security.md lists the names that it must have. A
	// renewed one is taken without a restart; of one that does not fit, CertificateServed tells. To set or change it
	// restarts the instances one by one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="tls.secretName must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or a digit at both ends"
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// ServerName is a DNS name, one with '*' as its first label, or an IP address.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="isIP(self) || (self.matches('^([*][.])?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$') && !self.matches('(^|[.])[0-9]+$'))",message="each item of tls.names must be a DNS name in lower-case letters, such as db.example.com or *.db.example.com, or an IP address"
type ServerName string
