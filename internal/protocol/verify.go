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
	// Scrub is how the rest of the archive is read again, nil where it is not.
	Scrub *Scrub `json:"scrub,omitempty"`
}

// Scrub is how an archive is read again, and where the last verification has stopped.
type Scrub struct {
	Days int `json:"days"`
	// Budget is in bytes, 0 for as much as the days ask for.
	Budget int64      `json:"budget,omitempty"`
	Last   ScrubState `json:"last"`
}

// ScrubState is what one verification leaves for the next.
type ScrubState struct {
	// Position is from where on the next reads; At when the last did, Round since when the round is under way, Whole
	// since when every object was read.
	Position uint64    `json:"position,string"`
	At       time.Time `json:"at,omitzero"`
	Round    time.Time `json:"round,omitzero"`
	Whole    time.Time `json:"whole,omitzero"`
	Objects  int       `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Total    int64     `json:"total,omitempty"`
	// Broken are objects that are broken, More is how many there are besides.
	Broken []BrokenObject `json:"broken,omitempty"`
	More   int            `json:"more,omitempty"`
	// Error is why the archive could not be read.
	Error string `json:"error,omitempty"`
}

// BrokenObject is an object of an archive that is not what was written there.
type BrokenObject struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
	Newest  bool   `json:"newest,omitempty"`
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
	// Scrub is how far the rest of the archive was read again.
	Scrub *ScrubState `json:"scrub,omitempty"`
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
