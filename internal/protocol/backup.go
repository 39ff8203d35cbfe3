package protocol

import (
	"context"
	"encoding/json"
	"time"

	"toban.dev/internal/archive/bucket"
)

// PathBackup is of the server in a backup's Pod. GET: BackupProgress. For the operator.
const PathBackup = "/v1/backup"

// BackupSettings is all that the Pod of a backup has to know; it is in the ConfigMap
// NAME-backup. What is secret is mounted.
type BackupSettings struct {
	// Hosts are the DNS names of the instances. The Pod itself finds out which of them is
	// a standby that streams, since that changes.
	Hosts []string `json:"hosts"`
	// Archive is where the backup goes.
	Archive Archive `json:"archive"`
	// Keep is what remains in the archive.
	Keep Retention `json:"keep"`
	// Former are the archives of former major versions, the newest first: retention goes on there.
	Former []FormerArchive `json:"former,omitempty"`
	// Forgotten are others that the status does not have, because the first store has lost them or is another one by
	// now: backups of theirs are pinned, and stay in the copy.
	Forgotten []FormerArchive `json:"forgotten,omitempty"`
	// Second is the store that has a copy, nil where there is none.
	Second *bucket.Config `json:"second,omitempty"`
	// FullEvery is of how many backups one is a full one, 0 for all.
	FullEvery int `json:"fullEvery,omitempty"`
	// Verify is for the Pods that verify.
	Verify Verification `json:"verify"`
	// Authority, Operator and Given are the same as in Config.
	Authority string `json:"authority"`
	Operator  string `json:"operator"`
	Given     string `json:"given,omitempty"`
	// SampleDB is the manifest of what is backed up, which goes into the archive with each backup.
	SampleDB json.RawMessage `json:"sampledb,omitempty"`
}

// FormerArchive is that of a former major version.
type FormerArchive struct {
	Path  string `json:"path"`
	Major int    `json:"major"`
	// Pinned and InUse are as in Retention.
	Pinned []string `json:"pinned,omitempty"`
	InUse  []string `json:"inUse,omitempty"`
	// Snapshots are as in Retention.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
}

// FormerResult is what retention has found and done in the archive of a former major version.
type FormerResult struct {
	Path    string   `json:"path"`
	Major   int      `json:"major"`
	Windows []Window `json:"windows,omitempty"`
	// Removed are the ids of backups that were removed, of many the first; Held is what was not, why, and what to do.
	Removed []string `json:"removed,omitempty"`
	Held    string   `json:"held,omitempty"`
	// Empty says that nothing is left there.
	Empty bool `json:"empty,omitempty"`
}

// Retention says which parts of an archive are kept. One that both or either asks for stays.
type Retention struct {
	// Count is how many base backups are kept.
	Count int `json:"count"`
	// Days is for how many days every moment can be restored, 0 for as many as the backups last.
	Days int `json:"days,omitempty"`
	// Pinned are the ids of backups that stay, InUse of those that are being restored or verified.
	Pinned []string `json:"pinned,omitempty"`
	InUse  []string `json:"inUse,omitempty"`
	// Snapshots are those of volumes, which need WAL too.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
}

// BackupProgress is how far a backup is.
type BackupProgress struct {
	// Instance is the one that it is taken from, "" before that is known.
	Instance string `json:"instance,omitempty"`
	// Step says in a few words what is being done.
	Step string `json:"step"`
	// Done and Total are bytes of data; Total is an estimate, 0 where there is none.
	Done  int64 `json:"done"`
	Total int64 `json:"total,omitempty"`
	// Rate is in bytes a second.
	Rate int64 `json:"rate,omitempty"`
	// Backup is the id of the base backup that a restore fetches, "" before it is chosen.
	Backup string `json:"backup,omitempty"`
	// Session is the id of the one in which the server awaits that a snapshot of its volume is cut, "" for none.
	Session string `json:"session,omitempty"`
	// Upgrade is what the Pod of an upgrade has made, nil before it is whole and nobody works on the volume any more.
	// The Pod leaves the same as its termination message, which the kubelet tells seconds later.
	Upgrade *UpgradeResult `json:"upgrade,omitempty"`
	// Sides is the same of the Pod that changes sides.
	Sides *SidesResult `json:"sides,omitempty"`
}

// BackupResult is what a backup's Pod leaves as its termination message, and one that makes room.
type BackupResult struct {
	// Error is why there is no backup, "" where there is one.
	Error string `json:"error,omitempty"`
	// Warning is what failed though the backup is complete: to take an incremental one, to copy an instance whose data
	// is damaged, or the removal of older ones.
	Warning string `json:"warning,omitempty"`
	// Instance is the one that it was taken from.
	Instance string `json:"instance,omitempty"`
	// Archive is the path of the archive, which may be another one than when its Job was made; "" from an earlier
	// release. ID is the backup's name there.
	Archive string `json:"archive,omitempty"`
	ID      string `json:"id,omitempty"`
	// Store is the place of the store, likewise.
	Store string `json:"store,omitempty"`
	// Parent is the backup that it is the change from, "" for a full one.
	Parent string `json:"parent,omitempty"`
	// StartLSN and StopLSN are where its WAL begins, and where it is consistent.
	StartLSN string `json:"startLSN,omitempty"`
	StopLSN  string `json:"stopLSN,omitempty"`

	ServerVersion    string `json:"serverVersion,omitempty"`
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
	// Started and Stopped are when PostgreSQL began and ended it.
	Started time.Time `json:"started,omitzero"`
	Stopped time.Time `json:"stopped,omitzero"`
	// Bytes is the size of the data, Stored what it takes in the archive.
	Bytes  int64 `json:"bytes,omitempty"`
	Stored int64 `json:"stored,omitempty"`
	// Recipient is the public half of the key that it is encrypted for, "" for none.
	Recipient string `json:"recipient,omitempty"`
	// Keys are those that the archive needs, and those that the Secret has; nil where nobody has looked.
	Keys []ArchiveKey `json:"keys,omitempty"`
	// Removed are the ids of older backups that the retention has removed, of many the first.
	Removed []string `json:"removed,omitempty"`
	// Earliest is the end of the oldest backup that is kept.
	Earliest time.Time `json:"earliest,omitzero"`
	// Windows are what can be restored, the newest branch first, of many the first.
	Windows []Window `json:"windows,omitempty"`
	// Held is what retention has not removed though the rules would have it, why, and what to do; "" for nothing.
	Held string `json:"held,omitempty"`
	// Former is the same of former major versions.
	Former []FormerResult `json:"former,omitempty"`
	// Refused is what the store does not let be removed that is not to be kept, and what to do; "" for nothing.
	Refused string `json:"refused,omitempty"`
	// Snapshot is what makes a base backup of the snapshot of a volume, nil where the data is in the archive.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// ArchiveKey is a key of an archive: what needs it, and whether the Secret has it.
type ArchiveKey struct {
	// Recipient is its public half, "" for what nobody has noted the key of.
	Recipient string `json:"recipient,omitempty"`
	// Backups and WAL are how many backups, and objects of WAL, need it.
	Backups int `json:"backups,omitempty"`
	WAL     int `json:"wal,omitempty"`
	// Held says that the Secret has its private half.
	Held bool `json:"held,omitempty"`
}

// CopyResult is what the Pod that copies an archive into the second store leaves as its termination message.
type CopyResult struct {
	// Error is why the copying has ended before its time, "" where it has not.
	Error string `json:"error,omitempty"`
	// Problem is what was not copied or removed, why, and what to do; "" for nothing.
	Problem string `json:"problem,omitempty"`
	// Until is when the archive was looked at of which the copy has everything, zero where it lacks something; LSN is
	// up to where the copy can be restored.
	Until time.Time `json:"until,omitzero"`
	LSN   string    `json:"lsn,omitempty"`
	// CheckedAt is when all was compared, zero where it was not.
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// Objects and Bytes are how much was copied, Removed how many objects were removed from the copy.
	Objects int   `json:"objects,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	Removed int   `json:"removed,omitempty"`
	// Lost are the ids of backups that only the copy has though they are to be kept, of many the first.
	Lost []string `json:"lost,omitempty"`
}

// Window is a time of which every moment can be restored.
type Window struct {
	// Branch is the term that the branch begins with.
	Branch      uint64    `json:"branch"`
	Earliest    time.Time `json:"earliest,omitzero"`
	EarliestLSN string    `json:"earliestLSN"`
	// Latest and LatestLSN are empty for the one that goes on.
	Latest    time.Time `json:"latest,omitzero"`
	LatestLSN string    `json:"latestLSN,omitempty"`
}

// Backup asks the Pod of a backup how far it is.
func (c *Client) Backup(ctx context.Context, host string) (BackupProgress, error) {
	return call[BackupProgress](ctx, c, host, PathBackup, nil)
}
