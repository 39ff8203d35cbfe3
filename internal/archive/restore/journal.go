package restore

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"toban.dev/internal/archive/format"
)

// journal notes which pieces have been unpacked, for who goes on after this process. It only says where to look: what
// is on the volume counts if its checksums fit. So nothing of it need be on disk for good.
type journal struct {
	mutex sync.Mutex
	file  *os.File
	// lines are where the record of each piece stands that was noted before, by the hash of its name.
	lines map[nameHash]line
	end   int64
}

type line struct{ from, length int64 }

// unpacked is the record of a piece.
type unpacked struct {
	Backup string        `json:"backup"`
	Piece  format.Object `json:"piece"`
	// From and To are where in its tar file it begins and ends.
	From    place    `json:"from"`
	To      place    `json:"to"`
	Extents []extent `json:"extents"`
}

func (u unpacked) key() nameHash { return hashName(u.Backup + "/" + u.Piece.Name) }

// openJournal opens one, or makes it. Lines that can't be understood, as where a machine has lost its power, are passed
// over.
func openJournal(name string) (*journal, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the note of what is unpacked: %w", err)
	}
	j := &journal{file: file, lines: map[nameHash]line{}}
	if err := j.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the note of what is unpacked: %w", err), file.Close())
	}
	return j, nil
}

func (j *journal) read() error {
	r := bufio.NewReaderSize(j.file, 1<<20)
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line that is cut off is written over
		}
		if err != nil {
			return err
		}
		var u unpacked
		if json.Unmarshal(text, &u) == nil {
			j.lines[u.key()] = line{j.end, int64(len(text))}
		}
		j.end += int64(len(text))
	}
}

// find is the record of a piece from before, nil where there is none of the same content.
func (j *journal) find(backup string, piece format.Object) *unpacked {
	if j == nil {
		return nil
	}
	at, ok := j.lines[unpacked{Backup: backup, Piece: piece}.key()]
	if !ok {
		return nil
	}
	u, err := j.record(at)
	if err != nil || u.Backup != backup || u.Piece != piece {
		return nil
	}
	return &u
}

func (j *journal) record(at line) (u unpacked, err error) {
	text := make([]byte, at.length)
	if _, err := j.file.ReadAt(text, at.from); err != nil {
		return u, fmt.Errorf("read the note of what is unpacked: %w", err)
	}
	if err := json.Unmarshal(text, &u); err != nil {
		return u, fmt.Errorf("read the note of what is unpacked: %w", err)
	}
	return u, nil
}

// sizes are how large the records of a tar file make each file, -1 for a folder or a link, by the hash of its name.
func (j *journal) sizes(backup, tar string) (map[nameHash]int64, error) {
	sizes := map[nameHash]int64{}
	for _, at := range j.lines {
		u, err := j.record(at)
		if err != nil {
			return nil, err
		}
		if of, _, _ := format.ParsePieceName(u.Piece.Name); u.Backup != backup || of != tar {
			continue
		}
		for _, e := range u.Extents {
			hash := hashName(e.Name)
			if sizes[hash] = max(sizes[hash], e.Offset+e.Length); e.Kind != 0 {
				sizes[hash] = -1
			}
		}
	}
	return sizes, nil
}

// nameHash is in place of a name, of which there may be millions.
type nameHash [16]byte

func hashName(name string) nameHash {
	sum := sha256.Sum256([]byte(name))
	return nameHash(sum[:16])
}

// note adds a record.
func (j *journal) note(u unpacked) error {
	if j == nil {
		return nil
	}
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if _, err := j.file.WriteAt(text, j.end); err != nil {
		return fmt.Errorf("note what is unpacked: %w", err)
	}
	j.end += int64(len(text))
	return nil
}

// close ends it; there may be none.
func (j *journal) close() {
	if j != nil {
		_ = j.file.Close() // what it lacks is fetched again
	}
}
