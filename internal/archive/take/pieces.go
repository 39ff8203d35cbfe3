package take

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// archive begins a tar file.
func (t *taking) archive(name, location string) error {
	if !t.wantsTar {
		return fmt.Errorf("the server sends %s after the manifest", name)
	}
	t.endTar()
	t.tar, t.number = name, 0
	if name == format.BaseTar {
		return nil
	}
	oid, err := strconv.ParseUint(strings.TrimSuffix(name, ".tar"), 10, 32)
	if err != nil {
		return fmt.Errorf("the server begins an archive %q", name)
	}
	t.backup.Tablespaces = append(t.backup.Tablespaces, format.Tablespace{OID: uint32(oid), Location: location})
	return nil
}

// manifest ends the last tar file.
func (t *taking) manifest() error {
	t.endTar()
	t.wantsTar = false
	var err error
	t.text, err = newManifestWriter(t.Encoder, func(name string, stored []byte) (format.Object, error) {
		return t.store(t.ctx, name, stored)
	})
	return err
}

func (t *taking) data(content []byte) error {
	if !t.wantsTar {
		_, err := t.text.Write(content)
		return err
	}
	if t.tar == "" {
		return errors.New("the server sends data of no archive")
	}
	t.meter.Add(len(content))
	for len(content) > 0 {
		if t.current == nil {
			if err := t.acquireBuffer(); err != nil {
				return err
			}
		}
		n := min(len(content), t.pieceSize()-len(t.current))
		t.current = append(t.current, content[:n]...)
		content = content[n:]
		if len(t.current) == t.pieceSize() {
			t.cut()
		}
	}
	return nil
}

// acquireBuffer waits for a worker to have done with one.
func (t *taking) acquireBuffer() error {
	select {
	case buffer := <-t.buffers:
		if buffer == nil {
			buffer = make([]byte, 0, t.pieceSize())
		}
		t.current = buffer[:0]
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

func (t *taking) pieceSize() int { return cmp.Or(t.TakeOptions.PieceSize, format.PieceSize) }

// endTar makes a piece of what is left of a tar file.
func (t *taking) endTar() {
	if len(t.current) > 0 {
		t.cut()
	}
	t.tar = ""
}

// cut has what has come so far written as a piece.
func (t *taking) cut() {
	content, name, first, number := t.current, format.PieceName(t.tar, t.number), t.number == 0, t.all
	t.current = nil
	t.number++
	t.all++
	t.group.Go(func() error {
		defer func() { t.buffers <- content }()
		piece, err := t.put(t.ctx, name, content)
		if err != nil {
			return err
		}
		if err := t.note(number, piece, first); err != nil {
			return err
		}
		return t.point("piece")
	})
}

// note notes a piece that was written. Where a list of pieces is written then, the others wait.
func (t *taking) note(number int, piece format.Object, first bool) error {
	t.listing.Lock()
	defer t.listing.Unlock()
	if first {
		t.begins = append(t.begins, piece)
	}
	return t.pieces.add(number, piece)
}

// put seals content and writes it; the name is that within the backup's folder.
func (t *taking) put(ctx context.Context, name string, content []byte) (format.Object, error) {
	sealed, err := t.Encoder.Encode(content)
	if err != nil {
		return format.Object{}, err
	}
	object, err := t.store(ctx, t.Encoder.Name(name), sealed)
	if err != nil {
		return format.Object{}, err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.backup.RawBytes += int64(len(content))
	return object, nil
}

// putSampleDB writes the manifest of what is backed up.
func (t *taking) putSampleDB(ctx context.Context) (err error) {
	if t.TakeOptions.SampleDB == nil {
		return nil
	}
	t.backup.SampleDB, err = t.put(ctx, format.FileSampleDB, t.TakeOptions.SampleDB)
	return err
}

// store writes an object as it is to lie in the bucket.
func (t *taking) store(ctx context.Context, name string, stored []byte) (format.Object, error) {
	sum := sha256.Sum256(stored)
	object := format.Object{Name: name, Size: int64(len(stored)), SHA256: hex.EncodeToString(sum[:])}
	full := t.backup.Folder() + name
	if err := transfer.Patiently(ctx, func() error { return t.create(ctx, full, stored) }); err != nil {
		return format.Object{}, fmt.Errorf("write %s: %w", full, err)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.backup.StoredBytes += object.Size
	return object, nil
}

// create writes an object and replaces none: a store may forbid that. One of the same content is there from a try
// before this one, which had no answer.
func (t *taking) create(ctx context.Context, name string, content []byte) error {
	err := t.Bucket.Create(ctx, name, content)
	if !errors.Is(err, bucket.ErrExists) {
		return err
	}
	found, unread := format.ReadMost(ctx, t.Bucket, name, bucket.MaxObject+1)
	if unread != nil {
		return unread // another try may tell
	}
	if !bytes.Equal(found, content) {
		return err
	}
	return nil
}
