package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
)

// The types of a base backup.
const (
	TypeFull        = "full"
	TypeIncremental = "incremental"
)

// Object is one of a backup, as it lies in the bucket.
type Object struct {
	// Name is that within the backup's folder, with the endings that a Encoder adds.
	Name string `json:"name"`
	// Size is in bytes, SHA256 in hexadecimal, both of what lies in the bucket.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Tablespace is one besides PostgreSQL's own.
type Tablespace struct {
	OID      uint32 `json:"oid"`
	Location string `json:"location"`
}

// Backup is what backup.json says of a base backup.
type Backup struct {
	ID string `json:"id"`
	// Type is TypeFull or TypeIncremental, Parent the id of what an incremental one is the change from.
	Type   string `json:"type"`
	Parent string `json:"parent,omitempty"`
	// Label is the user's. Trigger is why it was made (naming.TriggerSchedule and its like), "" in one
	// from before this was noted.
	Label   string    `json:"label,omitempty"`
	Trigger string    `json:"trigger,omitempty"`
	Started time.Time `json:"started"`
	Stopped time.Time `json:"stopped"`
	// StartLSN is where its WAL begins, StopLSN from where on it is consistent.
	StartLSN      wal.LSN      `json:"-"`
	StopLSN       wal.LSN      `json:"-"`
	StartTimeline wal.Timeline `json:"startTimeline"`
	StopTimeline  wal.Timeline `json:"stopTimeline"`
	// Term is that in which it was taken; its term history says whose WAL it goes on with.
	Term uint64 `json:"term"`
	// Recipient is the public half of the key that it needs, "" without encryption, and in one from before this was
	// noted.
	Recipient        string       `json:"recipient,omitempty"`
	SystemIdentifier string       `json:"systemIdentifier"`
	ServerVersion    string       `json:"serverVersion"`
	Tablespaces      []Tablespace `json:"tablespaces,omitempty"`
	// Layout is 0, or LayoutLists of a backup that is too large for that: then its manifest may be in ManifestParts,
	// and its pieces in Lists, by tar file as Tars say.
	Layout        int         `json:"layout,omitempty"`
	Manifest      Object      `json:"manifest"`
	ManifestParts []Object    `json:"manifestParts,omitempty"`
	Pieces        []Object    `json:"pieces"`
	Lists         []PieceList `json:"lists,omitempty"`
	Tars          []Tar       `json:"tars,omitempty"`
	// SampleDB has the manifest of what was backed up. It has no name in a backup from before this was noted.
	SampleDB Object `json:"sampledb,omitzero"`
	// RawBytes is the size of its content, StoredBytes that of its objects.
	RawBytes    int64 `json:"rawBytes"`
	StoredBytes int64 `json:"storedBytes"`
}

type backupFields Backup

type backupFile struct {
	backupFields
	StartLSN lsnText `json:"startLSN"`
	StopLSN  lsnText `json:"stopLSN"`
}

// MarshalJSON writes backup.json.
func (b Backup) MarshalJSON() ([]byte, error) {
	if b.Layout != 0 {
		b.ID += layoutsRemark
	}
	return json.Marshal(backupFile{backupFields(b), lsnText(b.StartLSN), lsnText(b.StopLSN)})
}

// UnmarshalJSON reads backup.json.
func (b *Backup) UnmarshalJSON(text []byte) error {
	var file backupFile
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	if file.Layout > LayoutLists {
		return fmt.Errorf("the backup is in layout %d, and this program knows %d: take a newer version of Toban",
			file.Layout, LayoutLists)
	}
	if err := checkTars(file.Tars); err != nil {
		return err
	}
	file.ID = strings.TrimSuffix(file.ID, layoutsRemark)
	*b = Backup(file.backupFields)
	b.StartLSN, b.StopLSN = wal.LSN(file.StartLSN), wal.LSN(file.StopLSN)
	return nil
}

// LayoutLists is the layout of a backup whose pieces stand in lists, or whose manifest is in parts. A program that does
// not know it reads the sentence behind the id instead of an id, and lets the backup alone.
const (
	LayoutLists   = 2
	layoutsRemark = ", in layout 2: a newer version of Toban can read it"
)

// PieceList is an object with a part of the list of a backup's pieces: a JSON list of Objects.
type PieceList struct {
	Object
	// Tars are the tar files whose pieces it has.
	Tars []string `json:"tars"`
}

// Tar is a tar file that is in lists of pieces: its pieces are numbered from 0 on.
type Tar struct {
	Name string `json:"name"`
	// Ending is what an Encoder adds to the names of its pieces.
	Ending string `json:"ending"`
	// Pieces is how many there are, StoredBytes the size of all.
	Pieces      int   `json:"pieces"`
	StoredBytes int64 `json:"storedBytes"`
}

// mostPieces is how many pieces a backup may have: those of 256 TiB. The names of all are made when it is deleted.
const mostPieces = 1 << 23

// checkTars refuses tar files whose pieces nobody has written: what follows from them is deleted by name.
func checkTars(tars []Tar) error {
	pieces := 0
	for _, tar := range tars {
		if !TarName.MatchString(tar.Name) || tar.Ending != EndCompressed && tar.Ending != endEncrypted {
			return fmt.Errorf("it has a tar file %q with pieces that end with %q", tar.Name, tar.Ending)
		}
		if tar.Pieces < 0 || tar.Pieces > mostPieces-pieces {
			return fmt.Errorf("%s has %d pieces, and a backup at most %d", tar.Name, tar.Pieces, mostPieces)
		}
		pieces += tar.Pieces
	}
	return nil
}

// Folder is that of the backup in its archive, with a slash at the end.
func (b Backup) Folder() string { return FolderBase + b.ID + "/" }

// Listed says that the pieces of the backup stand in lists of their own.
func (b Backup) Listed() bool { return len(b.Lists) > 0 }

// ManifestObjects is what PostgreSQL's manifest lies in: one object, or parts of it in order.
func (b Backup) ManifestObjects() []Object {
	if len(b.ManifestParts) > 0 {
		return b.ManifestParts
	}
	return []Object{b.Manifest}
}

// Objects are those that backup.json names itself, but for lists.
func (b Backup) Objects() []Object {
	return slices.DeleteFunc(slices.Concat(b.ManifestObjects(), []Object{b.SampleDB}, b.Pieces),
		func(o Object) bool { return o.Name == "" })
}

// SortPieces are pieces by tar file and number. A number of more than five digits comes after those with five.
func SortPieces(pieces []Object) []Object {
	pieces = slices.Clone(pieces)
	slices.SortFunc(pieces, func(a, b Object) int {
		aTar, aNumber, _ := ParsePieceName(a.Name)
		bTar, bNumber, _ := ParsePieceName(b.Name)
		return cmp.Or(strings.Compare(aTar, bTar), cmp.Compare(aNumber, bNumber))
	})
	return pieces
}

// ParsePieceName is the opposite of PieceName, with what an Encoder has added: base.tar, 7 and .zst of
// base.tar.00007.zst.
func ParsePieceName(name string) (tar string, number int, ending string) {
	tar, rest, ok := strings.Cut(name, ".tar.")
	digits, ending, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil || PieceName(tar+".tar", number) != tar+".tar."+digits {
		return "", 0, ""
	}
	return tar + ".tar", number, "." + ending
}

// Kind is why a backup was made. One from before that was noted is taken for one of the schedule.
func (b Backup) Kind() string { return cmp.Or(b.Trigger, naming.TriggerSchedule) }

// TypeSnapshot is the type of a base backup whose data is the snapshot of a volume. It has no backup.json, and is in no
// catalogue but that of its own restore.
const TypeSnapshot = "snapshot"

// Snapshot is a base backup whose data is the snapshot of a volume.
type Snapshot struct {
	Backup
	// BackupLabel is the file that a server needs which starts with the data.
	BackupLabel string
}

// ManifestChecksums is the algorithm that manifests are asked for with.
const ManifestChecksums = "CRC32C"
