package protocol

// ImageResult is what the process in the Pod of a look into an image leaves: what it has found there.
type ImageResult struct {
	// Version is that of PostgreSQL's programs, for instance "17.12".
	Version string `json:"version,omitempty"`
	// CLibrary is the C library with its version, for instance "glibc 2.41", ICU the version of ICU, for instance
	// "76.1". Each is empty where it is not known.
	CLibrary string `json:"cLibrary,omitempty"`
	ICU      string `json:"icu,omitempty"`
	// Extensions are those that can be created, each with its default version: as many as there is room for.
	Extensions []string `json:"extensions,omitempty"`
	// Error is why nothing was found.
	Error string `json:"error,omitempty"`
}
