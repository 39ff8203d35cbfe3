package protocol

import "time"

// Verification is what the Pod of a verification has to know besides the archive.
type Verification struct {
	// Major is the PostgreSQL version, Parameters those that the database can't be read without.
	Major      int               `json:"major"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Encrypted says that the key of the archive is mounted.
	Encrypted  bool        `json:"encrypted,omitempty"`
	Assertions []Assertion `json:"assertions,omitempty"`
}

// Assertion is a question of the user's to a restored database.
type Assertion struct {
	Name     string `json:"name"`
	Database string `json:"database"`
	SQL      string `json:"sql"`
	// Want is what the first column of the first row must be; nil for anything.
	Want *string `json:"want,omitempty"`
}

// VerifyResult is what a verification's Pod leaves as its termination message: the container that restores where that
// fails, else the one that runs SQL.
type VerifyResult struct {
	// Error is what is wrong, "" if all is well.
	Error string `json:"error,omitempty"`
	// LSN is up to where the WAL could be replayed, Commit the time of the last transaction.
	LSN    string    `json:"lsn,omitempty"`
	Commit time.Time `json:"commit,omitzero"`
	// Recovery is how long it took until the database could have been used (seconds).
	Recovery float64        `json:"recovery,omitempty"`
	Steps    []VerifyStep   `json:"steps,omitempty"`
	Answers  []VerifyAnswer `json:"answers,omitempty"`
	// Objects are those of the archive that are broken.
	Objects []string `json:"objects,omitempty"`
}

// VerifyStep is a part of a verification.
type VerifyStep struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Skipped string  `json:"skipped,omitempty"`
}

// VerifyAnswer is the answer to an assertion.
type VerifyAnswer struct {
	Name    string `json:"name"`
	Rows    int    `json:"rows"`
	Got     string `json:"got,omitempty"`
	Problem string `json:"problem,omitempty"`
}
