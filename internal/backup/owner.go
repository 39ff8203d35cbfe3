package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"toban.dev/internal/bucket"
)

// Format is the version of the layout.
const Format = 1

// Owner is the SampleDB that an archive belongs to, as archive.json says.
type Owner struct {
	Format    int    `json:"format"`
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// SystemIdentifier is that of the database system whose WAL it is.
	SystemIdentifier string `json:"systemIdentifier"`
}

func (o Owner) String() string {
	return fmt.Sprintf("%s/%s (UID %s, system identifier %s)", o.Namespace, o.Name, o.UID, o.SystemIdentifier)
}

// ErrTaken says that an archive belongs to another SampleDB, or to another database system.
var ErrTaken = errors.New("the archive belongs to another")

// TakenError is ErrTaken with whom it belongs to.
type TakenError struct{ Owner Owner }

func (e *TakenError) Error() string { return fmt.Sprintf("%v: %s", ErrTaken, e.Owner) }

// Is makes it an ErrTaken.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// Claim makes an archive that of owner, or sees that it is. The error is a
// *TakenError if it is another's; nothing has been written then (invariant 2).
func Claim(ctx context.Context, b bucket.Bucket, owner Owner) error {
	owner.Format = Format
	if owner.UID == "" || owner.SystemIdentifier == "" {
		return fmt.Errorf("claim the archive: %s is not known well enough", owner)
	}
	there, err := ReadOwner(ctx, b)
	if errors.Is(err, bucket.ErrNotExist) {
		text, err := json.MarshalIndent(owner, "", "  ")
		if err != nil {
			return fmt.Errorf("claim the archive: %w", err)
		}
		err = b.Create(ctx, FileArchive, append(text, '\n'))
		if err == nil {
			return nil
		}
		if !errors.Is(err, bucket.ErrExists) {
			return fmt.Errorf("claim the archive: %w", err)
		}
		there, err = ReadOwner(ctx, b) // another was first, or an answer was lost
		if err != nil {
			return fmt.Errorf("claim the archive: %w", err)
		}
		return there.same(owner)
	}
	if err != nil {
		return fmt.Errorf("claim the archive: %w", err)
	}
	return there.same(owner)
}

func (o Owner) same(as Owner) error {
	if o.UID != as.UID || o.SystemIdentifier != as.SystemIdentifier {
		return &TakenError{o}
	}
	return nil
}

// ReadOwner reads archive.json; bucket.ErrNotExist where nobody has claimed the archive.
func ReadOwner(ctx context.Context, b bucket.Bucket) (Owner, error) {
	text, err := readWhole(ctx, b, FileArchive)
	if err != nil {
		return Owner{}, err
	}
	return parseOwner(text)
}

func parseOwner(text []byte) (Owner, error) {
	var owner Owner
	if err := json.Unmarshal(text, &owner); err != nil {
		return owner, fmt.Errorf("%s: %w", FileArchive, err)
	}
	if owner.Format != Format {
		return owner, fmt.Errorf("%s: the layout has version %d, and this program knows %d", FileArchive, owner.Format, Format)
	}
	if owner.UID == "" {
		return owner, fmt.Errorf("%s names nobody", FileArchive)
	}
	return owner, nil
}
