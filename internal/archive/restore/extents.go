package restore

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
)

// tarBlock is what a tar file consists of, in bytes: a header is one, and a file begins with one.
const tarBlock = 512

// extent is a stretch of a file that lies in one piece of a tar file, or a folder or a link.
type extent struct {
	Kind   byte   `json:"k,omitempty"` // of archive/tar; 0 for a file
	Name   string `json:"n"`
	Offset int64  `json:"o,omitempty"`
	Length int64  `json:"l,omitempty"`
	// Sum is the CRC-32C of the content, when that has been written.
	Sum     uint32 `json:"c,omitempty"`
	content []byte
}

// place is where in a tar file a piece begins or ends: between two files, or within one.
type place struct {
	// Name is the file that goes on, Offset where in it, and Left how much of it comes still.
	Name   string `json:"n,omitempty"`
	Offset int64  `json:"o,omitempty"`
	Left   int64  `json:"l,omitempty"`
	// Over says that the end of the tar file has come.
	Over bool `json:"e,omitempty"`
}

// split says what a piece has, and moves the place behind it. What the extents have as their content is the piece's.
func (p *place) split(piece []byte) (extents []extent, err error) {
	if len(piece)%tarBlock != 0 {
		return nil, errors.New("it is cut off within a block")
	}
	for at := 0; at < len(piece) && !p.Over; {
		if p.Left > 0 {
			n := min(p.Left, int64(len(piece)-at))
			extents = append(extents, extent{
				Name: p.Name, Offset: p.Offset, Length: n, content: piece[at : at+int(n)],
			})
			p.Offset, p.Left = p.Offset+n, p.Left-n
			at = (at + int(n) + tarBlock - 1) / tarBlock * tarBlock
			if p.Left == 0 {
				*p = place{}
			}
			continue
		}
		found, err := p.header(piece[at : at+tarBlock])
		if err != nil {
			return nil, err
		}
		extents = append(extents, found...)
		at += tarBlock
	}
	return extents, nil
}

// header reads one. PostgreSQL's are all of one block.
func (p *place) header(block []byte) ([]extent, error) {
	header, err := tar.NewReader(bytes.NewReader(block)).Next()
	if errors.Is(err, io.EOF) {
		p.Over = true
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the tar file: %w", err)
	}
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeSymlink:
		return []extent{{Kind: header.Typeflag, Name: name}}, nil
	case tar.TypeReg:
		if header.Size == 0 {
			return []extent{{Name: name}}, nil
		}
		p.Name, p.Offset, p.Left = name, 0, header.Size
		return nil, nil
	}
	return nil, fmt.Errorf("unpack %q: it is of type %q, which no backup has", header.Name, header.Typeflag)
}

// end is an error where a file has not come to its end.
func (p *place) end() error {
	if p.Left > 0 {
		return fmt.Errorf("read the tar file: %q: %w", p.Name, io.ErrUnexpectedEOF)
	}
	return nil
}
