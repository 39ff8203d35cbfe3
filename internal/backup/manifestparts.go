package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// How large the objects of a manifest are; less in tests.
var (
	// mostManifest is from where on a manifest is in parts, as it lies in the bucket.
	mostManifest = bucket.MaxObject
	// manifestPart is the size of a part.
	manifestPart = 32 << 20
)

// manifestWriter compresses and encrypts a manifest as it comes. It has tens of bytes for each file in the bucket, and
// two hundred before.
type manifestWriter struct {
	// put writes an object whose name and content are final.
	put    func(name string, stored []byte) (format.Object, error)
	name   string // of the one object, or of the parts without their numbers
	encode io.WriteCloser
	stored bytes.Buffer
	parts  []format.Object
	raw    int64
}

// newManifestWriter begins.
func newManifestWriter(encoder *format.Encoder, put func(string, []byte) (format.Object, error)) (*manifestWriter, error) {
	w := &manifestWriter{put: put, name: encoder.Name(format.FileManifest)}
	var err error
	w.encode, err = encoder.Writer(&w.stored)
	return w, err
}

// Write implements io.Writer.
func (w *manifestWriter) Write(text []byte) (int, error) {
	n, err := w.encode.Write(text)
	w.raw += int64(n)
	if err == nil && w.stored.Len() > mostManifest {
		err = w.writeParts(manifestPart)
	}
	return n, err
}

// writeParts writes parts as long as there is so much.
func (w *manifestWriter) writeParts(least int) error {
	for w.stored.Len() >= least {
		part, err := w.put(fmt.Sprintf("%s.%05d", w.name, len(w.parts)), w.stored.Next(manifestPart))
		if err != nil {
			return err
		}
		w.parts = append(w.parts, part)
	}
	return nil
}

// end writes what is left, and puts what backup.json says of the manifest into it.
func (w *manifestWriter) end(b *format.Backup) (err error) {
	if err := w.encode.Close(); err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	if len(w.parts) == 0 && w.stored.Len() <= mostManifest {
		b.Manifest, err = w.put(w.name, w.stored.Bytes())
		return err
	}
	if err := w.writeParts(1); err != nil {
		return err
	}
	b.Layout, b.ManifestParts = format.LayoutLists, w.parts
	return nil
}

// manifestReader is a manifest as PostgreSQL wrote it. Each object is checked before any of it is given.
type manifestReader struct {
	io.ReadCloser
	stored *transfer.InOrder
	cancel context.CancelFunc
}

// openManifest opens that of a backup.
func openManifest(ctx context.Context, from bucket.Bucket, decoder *format.Decoder, b format.Backup) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	objects := b.ManifestObjects()
	name := objects[0].Name
	if len(b.ManifestParts) > 0 {
		name = name[:strings.LastIndexByte(name, '.')]
	}
	stored := &transfer.InOrder{Ordered: transfer.ReadOrdered(ctx, transfer.Each(objects), 2, func(ctx context.Context, o format.Object) ([]byte, error) {
		return readStored(ctx, from, b.Folder(), o)
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
