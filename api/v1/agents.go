package v1

// AgentsStatus says whether the agents run the operator's own program, by which they are replaced in place.
type AgentsStatus struct {
	// The first twelve digits of the SHA-256 of the operator's program.
	Program string `json:"program"`

	// The instances whose agent runs it.
	// +optional
	Current []string `json:"current,omitempty"`

	// Why not all agents run it, in one word for programs, and in a sentence.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}
