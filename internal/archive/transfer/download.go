package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// Download reads an object, of at most limit bytes.
func Download(ctx context.Context, from bucket.Bucket, name string, limit int64) (stored []byte, err error) {
	err = Patiently(ctx, func() error {
		r, err := from.Get(ctx, name)
		if errors.Is(err, bucket.ErrNotExist) {
			return &format.ObjectError{Name: name, What: format.Missing}
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		defer r.Close()
		var buffer bytes.Buffer
		if _, err := buffer.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		stored = buffer.Bytes()
		return nil
	})
	return stored, err
}
