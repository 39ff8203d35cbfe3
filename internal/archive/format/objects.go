package format

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"toban.dev/internal/archive/bucket"
)

// What is wrong with an object.
const (
	Missing   = "missing"
	Truncated = "truncated"
	Altered   = "altered"
)

// ObjectError says which object of an archive is not what it was when it was written.
type ObjectError struct {
	// Name is that within the archive, What is Missing, Truncated or Altered.
	Name, What string
	// Err is how that was noticed, nil where What says all.
	Err error
}

// Error names the object.
func (e *ObjectError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s is %s", e.Name, e.What)
	}
	return fmt.Sprintf("%s is %s: %v", e.Name, e.What, e.Err)
}

// Unwrap is how it was noticed.
func (e *ObjectError) Unwrap() error { return e.Err }

// Check says what is wrong with what lies in the bucket for an object, under its whole name.
func (o Object) Check(name string, stored []byte) error {
	switch size := int64(len(stored)); {
	case size < o.Size:
		return &ObjectError{name, Truncated, fmt.Errorf("it has %d of its %d bytes", size, o.Size)}
	case size > o.Size:
		return &ObjectError{name, Altered, fmt.Errorf("it has more than its %d bytes", o.Size)}
	}
	if sum := sha256.Sum256(stored); hex.EncodeToString(sum[:]) != o.SHA256 {
		return &ObjectError{name, Altered, errors.New("its SHA-256 is another one")}
	}
	return nil
}

// Decode opens what lies in the bucket, into at most limit bytes: more would not be ours.
func Decode(decoder *Decoder, name string, stored []byte, limit int64) ([]byte, error) {
	r, err := decoder.Decode(name, bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var content bytes.Buffer
	content.Grow(int(min(limit, 4*int64(len(stored))+bytes.MinRead)))
	if _, err := content.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, &ObjectError{name, Altered, err}
	}
	if int64(content.Len()) > limit {
		return nil, &ObjectError{name, Altered, fmt.Errorf("it has more than %d bytes", limit)}
	}
	return content.Bytes(), nil
}

// CheckWAL says what is wrong with the content of an object of WAL, which is to be all of a piece.
func CheckWAL(name string, p Piece, content []byte) error {
	if want := int(p.To - p.From); len(content) != want {
		return &ObjectError{name, Altered, fmt.Errorf("it has %d bytes of WAL, not %d", len(content), want)}
	}
	if at := ForeignPage(content, p); at >= 0 {
		return &ObjectError{name, Altered, fmt.Errorf("at byte %d it has WAL of another place", at)}
	}
	return nil
}

// IsSmall says that an object is one of the small json objects that are read with a listing.
func IsSmall(name string) bool {
	if name == FileArchive {
		return true
	}
	parts := strings.Split(name, "/")
	return len(parts) == 3 &&
		(parts[0]+"/" == FolderWAL && parts[2] == FileLineage || parts[0]+"/" == FolderBase && parts[2] == FileBackup)
}

// SmallLimit is how large a json object may be, in bytes: a backup.json is much smaller than the largest object.
const SmallLimit = 512 << 20

// ReadWhole reads a small json object.
func ReadWhole(ctx context.Context, b bucket.Bucket, name string) ([]byte, error) {
	return ReadMost(ctx, b, name, SmallLimit)
}

// ReadMost reads an object, up to so many bytes.
func ReadMost(ctx context.Context, b bucket.Bucket, name string, most int64) ([]byte, error) {
	r, err := b.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer r.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(io.LimitReader(r, most)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content.Bytes(), nil
}
