package format

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toban.dev/internal/archive/bucket"
)

// Version is the version of the layout.
const Version = 1

// Owner is the SampleDB that an archive belongs to, as archive.json says.
type Owner struct {
	Format    int    `json:"format"`
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// SystemIdentifier is that of the database system whose WAL it is.
	SystemIdentifier string `json:"systemIdentifier"`
}

// String is for people.
func (o Owner) String() string {
	if o.UID == "" {
		return fmt.Sprintf("a database system with the identifier %s, by its backups", o.SystemIdentifier)
	}
	return fmt.Sprintf("%s/%s (UID %s, system identifier %s)", o.Namespace, o.Name, o.UID, o.SystemIdentifier)
}

// ErrTaken says that an archive belongs to another SampleDB, or to another database system.
var ErrTaken = errors.New("the archive belongs to another")

// TakenError is ErrTaken with whom it belongs to.
type TakenError struct{ Owner Owner }

// Error names the owner.
func (e *TakenError) Error() string { return fmt.Sprintf("%v: %s", ErrTaken, e.Owner) }

// Is makes it an ErrTaken.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// Claim makes an archive that of owner, or sees that it is. The error is a *TakenError if it is another's; nothing has
// been written then (invariant 2). It is ErrReplaces if the store is none for an archive. Where archive.json is lost,
// it is written anew if the backups prove that the archive is the owner's; else that is an *UnclaimedError.
func Claim(ctx context.Context, b bucket.Bucket, owner Owner) error {
	return claim(ctx, b, owner, false)
}

// Reclaim is Claim for who knows that the archive is the owner's, because it has claimed it before: archive.json is
// written anew where it is lost, unless a backup says that it is of another.
func Reclaim(ctx context.Context, b bucket.Bucket, owner Owner) error {
	return claim(ctx, b, owner, true)
}

func claim(ctx context.Context, b bucket.Bucket, owner Owner, known bool) error {
	owner.Format = Version
	if owner.UID == "" || owner.SystemIdentifier == "" {
		return fmt.Errorf("claim the archive: %s is not known well enough", owner)
	}
	there, err := ReadOwner(ctx, b)
	if errors.Is(err, bucket.ErrNotExist) || errors.Is(err, errEmpty) {
		write := b.Create
		if errors.Is(err, errEmpty) {
			write = b.Put
		}
		err = found(ctx, b, owner, known, write)
		if err == nil {
			return nil
		}
		if errors.Is(err, bucket.ErrExists) {
			there, err = ReadOwner(ctx, b) // another was first, or an answer was lost
		}
	}
	if err != nil {
		return fmt.Errorf("claim the archive: %w", err)
	}
	return there.Same(owner)
}

// found writes the archive.json of an archive that is nobody's, or the owner's.
func found(
	ctx context.Context, b bucket.Bucket, owner Owner, known bool,
	write func(ctx context.Context, name string, content []byte) error,
) error {
	there, err := readTraces(ctx, b)
	if err != nil {
		return err
	}
	if err := there.provenFor(owner, known); err != nil {
		return err
	}
	if err := prove(ctx, b); err != nil {
		return err
	}
	text, err := json.MarshalIndent(owner, "", "  ")
	if err != nil {
		return err
	}
	return write(ctx, FileArchive, append(text, '\n'))
}

// ErrReplaces says that a store replaces objects though it is told not to.
var ErrReplaces = errors.New("the store replaces an object that it is told to leave as it is (in S3: " +
	"it ignores If-None-Match in PutObject). Two writers could write over each other there, so nothing is archived: " +
	"take another store, or a version of this one that honours it")

// prove sees that a store refuses to create what is there: all that keeps writers apart rests on that (invariants 1 and
// 2). It is tried under a name that nobody else has, or two who try it would remove each other's object. Where nothing
// can be removed, that object stays: it is a few bytes, once for an archive, and nobody reads it.
func prove(ctx context.Context, b bucket.Bucket) error {
	name := "probe-" + strings.ToLower(rand.Text())
	if err := b.Create(ctx, name, []byte("the first")); err != nil {
		return fmt.Errorf("try whether the store keeps what is there: %w", err)
	}
	second := b.Create(ctx, name, []byte("another"))
	_ = b.Delete(ctx, name)
	switch {
	case second == nil:
		return ErrReplaces
	case !errors.Is(second, bucket.ErrExists):
		return fmt.Errorf("try whether the store keeps what is there: %w", second)
	}
	return nil
}

// Same is a *TakenError where the archive of an owner is not also that of another.
func (o Owner) Same(as Owner) error {
	if o.UID != as.UID || o.SystemIdentifier != as.SystemIdentifier {
		return &TakenError{o}
	}
	return nil
}

// ReadOwner reads archive.json; bucket.ErrNotExist where nobody has claimed the archive.
func ReadOwner(ctx context.Context, b bucket.Bucket) (Owner, error) {
	text, err := ReadWhole(ctx, b, FileArchive)
	if err != nil {
		return Owner{}, err
	}
	return ParseOwner(text)
}

// ErrLayout says that an archive is in a layout that this program does not know.
var ErrLayout = errors.New("the layout of the archive is not known to this version of Toban: take a newer one")

// ParseOwner reads archive.json, or copy.json, which says the same.
func ParseOwner(text []byte) (Owner, error) {
	var owner Owner
	if err := nonEmpty(text); err != nil {
		return owner, err
	}
	if err := json.Unmarshal(text, &owner); err != nil {
		return owner, fmt.Errorf("%s can't be understood: %w", FileArchive, err)
	}
	if owner.Format > Version {
		return owner, fmt.Errorf("%s: %w (it has version %d, and %d is known)", FileArchive, ErrLayout, owner.Format,
			Version)
	}
	if owner.UID == "" || owner.Format != Version {
		return owner, fmt.Errorf("%s names nobody", FileArchive)
	}
	return owner, nil
}
