package wal

import (
	"bytes"
	"encoding/binary"
)

// Tablespaces finds in WAL the records that make tablespaces. A server that replays one has the tablespace use its
// folder, wherever it runs (XLOG_TBLSPC_CREATE in commands/tablespace.h, PostgreSQL 15 to 19).
type Tablespaces struct {
	Pages Pages

	// next is where the segment begins that follows. begun is what there is of a record that goes on, nil where it
	// makes no tablespace, began where it begins, and left how much is missing of it.
	next  LSN
	begun []byte
	began LSN
	left  int
}

// Tablespace is a record that makes one: where it begins, and the folder.
type Tablespace struct {
	Begin  LSN
	Folder string
}

// What says that a record makes a tablespace: its resource manager (RM_TBLSPC_ID in rmgrlist.h), what that does
// (XLOG_TBLSPC_CREATE), and how long it is at most: a path has less than 1024 bytes (MAXPGPATH).
const (
	tablespaceManager = 5
	tablespaceCreate  = 0x00
	longestTablespace = 2048
)

// Segment takes in the content of a segment that begins at a position, and tells the records that end in it. Segments
// are taken in by their order: a record may begin in one and end in the next.
func (t *Tablespaces) Segment(start LSN, content []byte) (made []Tablespace) {
	if start != t.next {
		t.begun, t.left = nil, 0
	}
	t.next = start.Add(t.Pages.Segment)
	for at := uint64(0); at < uint64(len(content)); at += t.Pages.Page {
		page := content[at:min(at+t.Pages.Page, uint64(len(content)))]
		made = append(made, t.page(start.Add(at), page)...)
	}
	return made
}

// page takes in a page. One that has none of the WAL at its position is passed over.
func (t *Tablespaces) page(start LSN, page []byte) (made []Tablespace) {
	at := int(t.Pages.Record(start).Since(start)) //nolint:gosec // the length of a page's header
	if len(page) < at || LSN(binary.LittleEndian.Uint64(page[8:])) != start {
		return nil
	}
	add := func(length int) {
		part := page[at:min(at+length, len(page))]
		if t.left -= len(part); t.begun != nil {
			t.begun = append(t.begun, part...)
		}
		if t.left == 0 {
			if folder := tablespaceFolder(t.begun); folder != "" {
				made = append(made, Tablespace{t.began, folder})
			}
			t.begun = nil
		}
		at += (len(part) + 7) &^ 7
	}
	remaining := int(binary.LittleEndian.Uint32(page[16:]))
	if binary.LittleEndian.Uint16(page[2:])&pageContinues == 0 {
		remaining = 0
	}
	if remaining != t.left {
		t.begun, t.left = nil, remaining // what began before was cut off, or its beginning is not known
	}
	if t.left > 0 {
		add(t.left)
	}
	for t.left == 0 && at+4 <= len(page) {
		length := binary.LittleEndian.Uint32(page[at:])
		if !isLength(length) {
			break // nothing follows on this page
		}
		t.began = start.Add(uint64(at)) //nolint:gosec // it is in a page
		if t.left = int(length); t.left <= longestTablespace {
			t.begun = []byte{}
		}
		add(t.left)
	}
	return made
}

// tablespaceFolder is the folder of the tablespace that a whole record makes, "" where it makes none. The rest of such
// a record is the tablespace's OID and the folder, which a zero ends (xl_tblspc_create_rec), and nothing follows it.
func tablespaceFolder(record []byte) string {
	const infoAt, managerAt = 16, 17
	if len(record) < recordHeader || record[managerAt] != tablespaceManager ||
		record[infoAt]&0xF0 != tablespaceCreate {
		return ""
	}
	data := mainData(record[recordHeader:])
	if len(data) < 4 {
		return ""
	}
	folder, _, _ := bytes.Cut(data[4:], []byte{0})
	return string(folder)
}

// mainData is the main data of a record that refers to no block. Before its length may be what origin and which
// transaction it is of (XLogRecordDataHeaderShort and others in xlogrecord.h).
func mainData(rest []byte) []byte {
	const short, long, origin, topLevel = 255, 254, 253, 252
	for len(rest) > 5 {
		switch rest[0] {
		case origin:
			rest = rest[3:]
		case topLevel:
			rest = rest[5:]
		case short:
			return rest[2:]
		case long:
			return rest[5:]
		default:
			return nil
		}
	}
	return nil
}
