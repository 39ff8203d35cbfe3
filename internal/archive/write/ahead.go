package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"toban.dev/internal/archive/format"
)

// AheadError says that an archive has what its leader can't have written (docs/archive.md, "An archive that is ahead").
type AheadError struct {
	// Name is an object there, What how it was noticed.
	Name, What string
}

// Error says what to do: nothing is archived.
func (e *AheadError) Error() string {
	return fmt.Sprintf("the archive is ahead of this server: %s %s. A volume has gone back in time; nothing is "+
		"archived, so that nothing there is lost", e.Name, e.What)
}

// stamp tells the content of an object, for who can't read it: an HMAC by what only this database system knows, ""
// where that is not known. Who could guess the content could try with a plain hash whether that is right.
func (f *termFolder) stamp(plain string, content []byte) string {
	return format.StampWith(f.Secret, plain, content)
}

// compareWAL sees that an object has the WAL that the server has in its place. What the server has no more is not
// compared.
func (f *termFolder) compareWAL(ctx context.Context, p format.Piece, name string) error {
	content, err := f.readWAL(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s, to compare it with the archive: %w", p, err)
	}
	return f.compare(ctx, name, p.String(), content)
}

// compare sees that an object has a content: an *AheadError if it has another. One that is encrypted is compared by its
// stamp, if it has one, and else taken for what it should be.
func (f *termFolder) compare(ctx context.Context, name, plain string, content []byte) error {
	stored, err := format.ReadMost(ctx, f.Bucket, name, format.SealedLimit+1)
	if err != nil {
		return fmt.Errorf("compare with the archive: %w", err)
	}
	same := false
	if _, encrypted, _ := format.PlainName(name); encrypted {
		there, here := format.StampOf(stored), f.stamp(plain, content)
		same = there == "" || here == "" || there == here
	} else {
		there, err := format.Decode(&format.Decoder{}, name, stored, int64(len(content)))
		same = err == nil && bytes.Equal(there, content)
	}
	if !same {
		return &AheadError{name, "has other content than it would get"}
	}
	return nil
}
