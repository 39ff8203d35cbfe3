// Package format says what lies in an archive, under which name and in which form: WAL, what the leaders of terms note,
// term histories, backup.json, whose the archive is, and how objects are compressed, encrypted and stamped. The words
// and the layout are those of docs/archive.md. It decides nothing, and knows no Kubernetes and no server.
package format

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"toban.dev/internal/wal"
)

// SegmentSize is wal.SegmentSize; less in tests that go through thousands of histories.
var SegmentSize uint64 = wal.SegmentSize

// Pages are those of the WAL of Toban's servers.
var Pages = wal.Pages{Page: wal.PageSize, Segment: wal.SegmentSize}

// The names in an archive that are always the same.
const (
	FileArchive  = "archive.json"
	FileBackup   = "backup.json"
	FileLineage  = "lineage.json"
	FileManifest = "backup_manifest"
	FileSampleDB = "sampledb.json"
	FolderWAL    = "wal/"
	FolderBase   = "base/"
)

// SegmentOf is a segment of an archive.
func SegmentOf(timeline wal.Timeline, number uint64) wal.Segment {
	return wal.Segment{Timeline: timeline, Number: number, Size: SegmentSize}
}

// SegmentAt is the segment which has an LSN.
func SegmentAt(timeline wal.Timeline, lsn wal.LSN) wal.Segment {
	return wal.SegmentAt(timeline, lsn, SegmentSize)
}

// NumberAt is the number of the segment which has an LSN, whatever its timeline.
func NumberAt(lsn wal.LSN) uint64 { return SegmentAt(0, lsn).Number }

// SegmentStart is where the segment of a number begins, whatever its timeline.
func SegmentStart(number uint64) wal.LSN { return SegmentOf(0, number).Start() }

var (
	partName = regexp.MustCompile(`^([0-9A-F]{24})\.([0-9A-F]{8})-([0-9A-F]{8})$`)
	gapName  = regexp.MustCompile(`^gap-([0-9A-F]{16})-([0-9A-F]{16})$`)
)

// Piece is WAL as it lies in the archive: a segment, or a part of one.
type Piece struct {
	Segment wal.Segment
	// From and To are offsets in the segment, in bytes, To excluded.
	From, To uint32
}

// WholeSegment is all of a segment.
func WholeSegment(s wal.Segment) Piece {
	return Piece{s, 0, uint32(s.Size)} //nolint:gosec // at most 1 GiB
}

// UpTo is where in the segment the piece ends, without what is at an LSN or beyond.
func (p Piece) UpTo(limit wal.LSN) uint32 {
	start := p.Segment.Start()
	return uint32(min(uint64(p.To), limit.Since(start))) //nolint:gosec // at most p.To
}

// Whole says that it is the complete segment.
func (p Piece) Whole() bool { return p.From == 0 && uint64(p.To) == SegmentSize }

// String is its name without the endings that an Encoder adds.
func (p Piece) String() string {
	if p.Whole() {
		return p.Segment.String()
	}
	return fmt.Sprintf("%s.%08X-%08X", p.Segment, p.From, p.To)
}

// ParsePiece is the opposite of String; false for any other name.
func ParsePiece(name string) (Piece, bool) {
	if s, ok := wal.ParseSegment(name, SegmentSize); ok {
		return WholeSegment(s), true
	}
	m := partName.FindStringSubmatch(name)
	if m == nil {
		return Piece{}, false
	}
	s, ok := wal.ParseSegment(m[1], SegmentSize)
	from, _ := strconv.ParseUint(m[2], 16, 32)
	to, _ := strconv.ParseUint(m[3], 16, 32)
	p := Piece{s, uint32(from), uint32(to)}
	return p, ok && from < to && to <= SegmentSize && !p.Whole()
}

// TermFolder is where the leader of a term writes.
func TermFolder(term uint64) string { return fmt.Sprintf("%s%08X/", FolderWAL, term) }

// ParseTerm is the term whose folder an object lies in, and the rest of its name.
func ParseTerm(name string) (term uint64, rest string, ok bool) {
	in, ok := strings.CutPrefix(name, FolderWAL)
	if !ok {
		return 0, "", false
	}
	folder, rest, ok := strings.Cut(in, "/")
	if !ok || len(folder) < 8 {
		return 0, "", false
	}
	term, err := strconv.ParseUint(folder, 16, 64)
	return term, rest, err == nil && TermFolder(term) == FolderWAL+folder+"/"
}

// Gap is WAL that was written and is in no archive.
type Gap struct{ From, To wal.LSN }

// String says from where to where it is.
func (g Gap) String() string { return fmt.Sprintf("from %s to %s", g.From, g.To) }

// GapPrefix begins the names of notes of gaps.
const GapPrefix = "gap-"

// Name is that of the note of a gap in a term's folder.
func (g Gap) Name() string {
	return fmt.Sprintf("%s%016X-%016X", GapPrefix, uint64(g.From), uint64(g.To))
}

// ParseGap is the gap of which a note in a term's folder is; false for any other name.
func ParseGap(name string) (Gap, bool) {
	m := gapName.FindStringSubmatch(name)
	if m == nil {
		return Gap{}, false
	}
	from, _ := strconv.ParseUint(m[1], 16, 64) // the expression has seen to it
	to, _ := strconv.ParseUint(m[2], 16, 64)
	return Gap{wal.LSN(from), wal.LSN(to)}, from < to
}

// The endings of what is compressed, and encrypted too.
const (
	EndCompressed = ".zst"
	endEncrypted  = ".zst.age"
)

// PlainName is an object's name without the endings of what was done to it, and
// whether it is encrypted; false for one that is neither compressed nor encrypted.
func PlainName(name string) (plain string, encrypted, ok bool) {
	if plain, ok = strings.CutSuffix(name, endEncrypted); ok {
		return plain, true, true
	}
	plain, ok = strings.CutSuffix(name, EndCompressed)
	return plain, false, ok
}

// PieceSize is how much of a tar stream goes into one object, in bytes before compression.
const PieceSize = 32 << 20

// BaseTar is the tar file of the data directory itself.
const BaseTar = "base.tar"

// TarName is what the tar files of a backup are called: that of the data directory, or of a tablespace by its OID.
var TarName = regexp.MustCompile(`^(base|[1-9][0-9]*)\.tar$`)

// PieceName is the name of a piece of a tar file, without the endings that a Encoder adds.
func PieceName(tar string, number int) string { return fmt.Sprintf("%s.%05d", tar, number) }

// BackupOf is the backup in whose folder an object lies.
func BackupOf(name string) (id string, ok bool) {
	in, ok := strings.CutPrefix(name, FolderBase)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(in, "/")
	return id, ok
}

// TimeFormat is how PostgreSQL is told a time, whatever its timezone.
const TimeFormat = "2006-01-02 15:04:05.999999-07:00"
