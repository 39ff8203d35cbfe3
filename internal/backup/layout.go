// Package backup archives WAL, takes base backups, and finds the way back. The
// words and the layout are those of docs/backup.md. It knows no Kubernetes.
package backup

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"toban.dev/internal/ha"
)

// SegmentSize is that of a WAL segment, in bytes: initdb's default, which ours
// never changes (PostgreSQL 17 documentation, 28.5).
const SegmentSize = 16 << 20

// segmentSize is SegmentSize; less in tests that go through thousands of histories.
var segmentSize uint64 = SegmentSize

// The names in an archive that are always the same.
const (
	FileArchive  = "archive.json"
	FileBackup   = "backup.json"
	FileLineage  = "lineage.json"
	FileManifest = "backup_manifest"
	FolderWAL    = "wal/"
	FolderBase   = "base/"
)

// Segment is a WAL segment of a timeline: Number is its start divided by SegmentSize.
type Segment struct {
	Timeline uint32
	Number   uint64
}

// SegmentAt is the segment which has an LSN.
func SegmentAt(timeline uint32, lsn ha.LSN) Segment {
	return Segment{timeline, uint64(lsn) / segmentSize}
}

// Start is the LSN of its first byte.
func (s Segment) Start() ha.LSN { return ha.LSN(s.Number * segmentSize) }

// End is the LSN after its last byte.
func (s Segment) End() ha.LSN { return s.Start() + ha.LSN(segmentSize) }

// String is the name of its file (PostgreSQL 17, src/include/access/xlog_internal.h).
func (s Segment) String() string {
	perFile := 1 << 32 / segmentSize
	return fmt.Sprintf("%08X%08X%08X", s.Timeline, s.Number/perFile, s.Number%perFile)
}

// ParseSegment is the opposite of String; false for any other name.
func ParseSegment(name string) (Segment, bool) {
	perFile := 1 << 32 / segmentSize
	if !segmentName.MatchString(name) {
		return Segment{}, false
	}
	timeline, _ := strconv.ParseUint(name[:8], 16, 32) // the expression has seen to it
	high, _ := strconv.ParseUint(name[8:16], 16, 32)
	low, _ := strconv.ParseUint(name[16:], 16, 32)
	return Segment{uint32(timeline), high*perFile + low}, low < perFile
}

var (
	segmentName = regexp.MustCompile(`^[0-9A-F]{24}$`)
	partName    = regexp.MustCompile(`^([0-9A-F]{24})\.([0-9A-F]{8})-([0-9A-F]{8})$`)
	gapName     = regexp.MustCompile(`^gap-([0-9A-F]{16})-([0-9A-F]{16})$`)
	historyName = regexp.MustCompile(`^[0-9A-F]{8}\.history$`)
)

// Piece is WAL as it lies in the archive: a segment, or a part of one.
type Piece struct {
	Segment Segment
	// From and To are offsets in the segment, in bytes, To excluded.
	From, To uint32
}

// Whole says that it is the complete segment.
func (p Piece) Whole() bool { return p.From == 0 && uint64(p.To) == segmentSize }

// String is its name without the endings that Sealed adds.
func (p Piece) String() string {
	if p.Whole() {
		return p.Segment.String()
	}
	return fmt.Sprintf("%s.%08X-%08X", p.Segment, p.From, p.To)
}

// ParsePiece is the opposite of String; false for any other name.
func ParsePiece(name string) (Piece, bool) {
	if s, ok := ParseSegment(name); ok {
		return Piece{s, 0, uint32(segmentSize)}, true
	}
	m := partName.FindStringSubmatch(name)
	if m == nil {
		return Piece{}, false
	}
	s, ok := ParseSegment(m[1])
	from, _ := strconv.ParseUint(m[2], 16, 32)
	to, _ := strconv.ParseUint(m[3], 16, 32)
	p := Piece{s, uint32(from), uint32(to)}
	return p, ok && from < to && to <= segmentSize && !p.Whole()
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

// gapPrefix begins the names of notes of gaps.
const gapPrefix = "gap-"

// name is that of the note of a gap in a term's folder.
func (g Gap) name() string {
	return fmt.Sprintf("%s%016X-%016X", gapPrefix, uint64(g.From), uint64(g.To))
}

// ParseGap is the gap of which a note in a term's folder is; false for any other name.
func ParseGap(name string) (Gap, bool) {
	m := gapName.FindStringSubmatch(name)
	if m == nil {
		return Gap{}, false
	}
	from, _ := strconv.ParseUint(m[1], 16, 64) // the expression has seen to it
	to, _ := strconv.ParseUint(m[2], 16, 64)
	return Gap{ha.LSN(from), ha.LSN(to)}, from < to
}

// HistoryFile is the name of a timeline's history.
func HistoryFile(timeline uint32) string { return fmt.Sprintf("%08X.history", timeline) }

// ParseHistory is the opposite of HistoryFile; false for any other name.
func ParseHistory(name string) (timeline uint32, ok bool) {
	if !historyName.MatchString(name) {
		return 0, false
	}
	n, err := strconv.ParseUint(name[:8], 16, 32)
	return uint32(n), err == nil
}

// The endings of what is compressed, and encrypted too.
const (
	endCompressed = ".zst"
	endEncrypted  = ".zst.age"
)

// PlainName is an object's name without the endings of what was done to it, and
// whether it is encrypted; false for one that is neither compressed nor encrypted.
func PlainName(name string) (plain string, encrypted, ok bool) {
	if plain, ok = strings.CutSuffix(name, endEncrypted); ok {
		return plain, true, true
	}
	plain, ok = strings.CutSuffix(name, endCompressed)
	return plain, false, ok
}
