package protocol

import (
	"context"
	"time"
)

// PathCut is of the server in the Pod of a backup by a snapshot. POST Cut: BackupProgress. For the operator.
const PathCut = "/v1/cut"

// Cut tells the Pod of a backup that the snapshot of the volume is cut which it has asked for.
type Cut struct {
	// Session is the id of the one in which it was asked for: a Pod with another one refuses.
	Session string `json:"session"`
}

// Snapshot is what makes a base backup of the snapshot of a volume.
type Snapshot struct {
	// ID is that of the session in which it was cut.
	ID string `json:"id"`
	// Label is the file backup_label, "" where only the WAL is asked for.
	Label string `json:"label,omitempty"`
	// Term and Timeline are those in which it was taken.
	Term     uint64 `json:"term"`
	Timeline uint32 `json:"timeline"`
	// StartLSN and StopLSN are where its WAL begins, and where it is consistent.
	StartLSN string `json:"startLSN"`
	StopLSN  string `json:"stopLSN"`
	// Stopped is when PostgreSQL ended it.
	Stopped          time.Time `json:"stopped,omitzero"`
	ServerVersion    string    `json:"serverVersion,omitempty"`
	SystemIdentifier string    `json:"systemIdentifier,omitempty"`
}

// Cut tells the Pod of a backup that the snapshot of the volume is cut.
func (c *Client) Cut(ctx context.Context, host string, cut Cut) (BackupProgress, error) {
	return call[BackupProgress](ctx, c, host, PathCut, cut)
}
