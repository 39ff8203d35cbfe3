package protocol

import (
	"strings"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/wal"
)

// Archive is where the leader puts the WAL (docs/archive.md).
type Archive struct {
	Bucket bucket.Config `json:"bucket"`
	// Path is the archive's folder in the bucket.
	Path string `json:"path"`
	// Owner is the UID of the SampleDB.
	Owner string `json:"owner"`
	// Recipient is the public half of the key to encrypt with, empty for none.
	Recipient string `json:"recipient,omitempty"`
	// MaxLag is for how long a commit may wait; 0 archives everything at once.
	MaxLag time.Duration `json:"maxLag,omitempty"`
}

// Place names the archive: its store, and its folder there.
func (a Archive) Place() string { return a.Bucket.Place() + "/" + a.Path }

// ArchiveStatus is how far a leader's archive is.
type ArchiveStatus struct {
	// Place is the archive's, "" from an agent of an earlier release.
	Place string `json:"place,omitempty"`
	// LSN is the archived position, empty while it is not known.
	LSN string `json:"lsn,omitempty"`
	// LagBytes is how much WAL is on the primary's disk and not there, LagSeconds for how long some of it has waited
	// that is not idle.
	LagBytes   uint64  `json:"lagBytes"`
	LagSeconds float64 `json:"lagSeconds"`
	// Reason and Error say what keeps it from going on, since when; empty while it does.
	Reason string    `json:"reason,omitempty"`
	Error  string    `json:"error,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Gap names the WAL that is in no archive, since this leader's term; empty for none.
	Gap string `json:"gap,omitempty"`
	// GapEnd is the position from which on WAL is there again. Release 0.1.0 does not say it: ask GapEndsAt.
	GapEnd string `json:"gapEnd,omitempty"`
}

// GapEndsAt is where the gap ends, false where that is not known. In a status of version 0.1.0 it is the last word of
// Gap ("from 0/5000000 to 0/6000000"); its agents go on as they are until their Pods are replaced.
func (s *ArchiveStatus) GapEndsAt() (wal.LSN, bool) {
	text := s.GapEnd
	if text == "" {
		text = s.Gap[strings.LastIndexByte(s.Gap, ' ')+1:]
	}
	end, err := wal.ParseLSN(text)
	return end, err == nil
}

// The values of ArchiveStatus.Reason.
const (
	ArchiveTaken   = "ArchiveTaken"   // the archive belongs to another SampleDB
	ArchiveAhead   = "ArchiveAhead"   // the archive has what the server does not have
	ArchiveUnfit   = "ArchiveUnfit"   // the store does not keep writers apart
	ArchiveFull    = "ArchiveFull"    // the store has no room
	ArchiveFailing = "ArchiveFailing" // the bucket does not take it
)
