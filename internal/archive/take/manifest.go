package take

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
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
func newManifestWriter(
	encoder *format.Encoder, put func(string, []byte) (format.Object, error),
) (*manifestWriter, error) {
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

// prove reads from the bucket, with the key, what a restore would begin with: the manifest, the first piece of each tar
// file, and all WAL that the backup needs itself.
func (t *taking) prove(ctx context.Context) error {
	if err := t.proveManifest(ctx); err != nil {
		return err
	}
	for _, o := range t.begins {
		if _, err := book.ReadPiece(ctx, t.Bucket, t.Decoder, t.backup.Folder(), o); err != nil {
			return err
		}
	}
	catalogue, err := book.Read(ctx, t.Bucket)
	if err != nil {
		return err
	}
	choice := book.Choice{Backup: t.backup, TermHistory: catalogue.NewestTermHistory(), To: t.backup.StopLSN}
	plan, err := catalogue.PlanWAL(choice.TermHistory, t.backup.StartLSN, choice.To)
	if err != nil {
		return err
	}
	r := book.SegmentReader{Bucket: t.Bucket, Decoder: t.Decoder, System: t.backup.SystemIdentifier,
		Again: book.Replan(t.Bucket, choice)}
	for _, s := range plan.Segments {
		if _, err := r.Read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) proveManifest(ctx context.Context) error {
	manifest, err := book.OpenManifest(ctx, t.Bucket, t.Decoder, t.backup)
	if err != nil {
		return err
	}
	defer manifest.Close()
	_, err = io.Copy(io.Discard, manifest)
	return err
}
