package book

import (
	"context"
	"io"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// manifestReader is a manifest as PostgreSQL wrote it. Each object is checked before any of it is given.
type manifestReader struct {
	io.ReadCloser
	stored *transfer.InOrder
	cancel context.CancelFunc
}

// OpenManifest opens that of a backup.
func OpenManifest(
	ctx context.Context, from bucket.Bucket, decoder *format.Decoder, b format.Backup,
) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	objects := b.ManifestObjects()
	name := objects[0].Name
	if len(b.ManifestParts) > 0 {
		name = name[:strings.LastIndexByte(name, '.')]
	}
	stored := &transfer.InOrder{Ordered: transfer.ReadOrdered(ctx, transfer.Each(objects), 2,
		func(ctx context.Context, o format.Object) ([]byte, error) {
			return ReadStored(ctx, from, b.Folder(), o)
		})}
	content, err := decoder.Decode(b.Folder()+name, stored)
	if err != nil {
		cancel()
		return nil, stored.Because(err)
	}
	return &manifestReader{content, stored, cancel}, nil
}

// Read implements io.Reader.
func (m *manifestReader) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // what wraps it is another error
		err = m.stored.Because(err)
	}
	return n, err
}

// Close implements io.Closer.
func (m *manifestReader) Close() error {
	m.cancel()
	return m.ReadCloser.Close()
}
