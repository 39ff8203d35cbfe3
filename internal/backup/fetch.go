package backup

import (
	"context"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// readPiece reads a piece of a backup whose folder this is, and opens it.
func readPiece(ctx context.Context, from bucket.Bucket, decoder *format.Decoder, folder string, o format.Object) ([]byte, error) {
	stored, err := readStored(ctx, from, folder, o)
	if err != nil {
		return nil, err
	}
	return format.Decode(decoder, folder+o.Name, stored, format.PieceSize)
}

// readStored reads an object of which size and SHA-256 are known, as it lies in the bucket.
func readStored(ctx context.Context, from bucket.Bucket, folder string, o format.Object) ([]byte, error) {
	name := folder + o.Name
	stored, err := transfer.Download(ctx, from, name, o.Size)
	if err != nil {
		return nil, err
	}
	if err := o.Check(name, stored); err != nil {
		return nil, err
	}
	return stored, nil
}
