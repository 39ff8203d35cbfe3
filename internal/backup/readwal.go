package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/ha"
)

// errRecycled says that a file is not the segment it was opened as.
var errRecycled = errors.New("the file has been put to another use while it was read")

// readWAL reads a piece from pg_wal. A segment that no slot keeps may be given another name
// and be written over under our hands, so each page has to say that it is of this place.
func (a *Archiver) readWAL(p Piece) ([]byte, error) {
	file, err := a.Source.Open(p.Segment.String())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content := make([]byte, p.To-p.From)
	if _, err := file.ReadAt(content, int64(p.From)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return content, checkPages(content, p)
}

// checkPages looks whether each page that begins in a piece says that it is of this place. The ones that
// follow the end of a segment that was left early are zeros altogether (CopyXLogRecordToWAL in xlog.c).
func checkPages(content []byte, p Piece) error {
	const header = 16 // magic, flags, timeline, address (xlog_internal.h)
	for at := (p.From + walPage - 1) / walPage * walPage; at+header <= p.To; at += walPage {
		page := content[at-p.From:]
		address := ha.LSN(binary.LittleEndian.Uint64(page[8:]))
		zero := address == 0 && binary.LittleEndian.Uint64(page) == 0
		if want := p.Segment.Start() + ha.LSN(at); address != want && (at == 0 || !zero) {
			return fmt.Errorf("%w: a page of %s is where that of %s should be", errRecycled, address, want)
		}
	}
	return nil
}
