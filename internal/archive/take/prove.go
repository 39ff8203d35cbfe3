package take

import (
	"context"
	"io"

	"toban.dev/internal/archive/book"
)

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
