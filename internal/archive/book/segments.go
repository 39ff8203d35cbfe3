package book

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

// SegmentReader makes of the objects of an archive the segments that a server replays.
type SegmentReader struct {
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	// System is the system identifier of the server, "" for any.
	System string
	// Again, if set, plans a segment anew of which an object is gone.
	Again func(ctx context.Context, s wal.Segment) ([]PlannedObject, error)
}

// Read makes a segment of its objects. What no part has is zeros, as PostgreSQL
// itself has it in a new segment.
func (r SegmentReader) Read(ctx context.Context, s PlannedSegment) ([]byte, error) {
	content := make([]byte, wal.SegmentSize)
	err := r.assemble(ctx, content, s.Objects)
	// Where a former version of Toban writes to the archive, parts are replaced by longer ones.
	for try := 0; try < replans && isMissing(err) && r.Again != nil; try++ {
		objects, again := r.Again(ctx, s.Segment)
		if again != nil {
			return nil, again
		}
		err = r.assemble(ctx, content, objects)
	}
	return content, err
}

// replans is how often a segment is planned anew.
const replans = 5

// partsAtOnce is how many parts of a segment are downloaded at the same time: one that was written slowly has hundreds.
const partsAtOnce = 8

// assemble puts objects over each other.
func (r SegmentReader) assemble(ctx context.Context, content []byte, objects []PlannedObject) error {
	parts := make([][]byte, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i, o := range objects {
		group.Go(func() (err error) {
			parts[i], err = r.piece(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, o := range objects {
		if o.To > o.Piece.From {
			copy(content[o.Piece.From:o.To], parts[i])
		}
	}
	return nil
}

func isMissing(err error) bool {
	var object *format.ObjectError
	return errors.As(err, &object) && object.What == format.Missing
}

func (r SegmentReader) piece(ctx context.Context, o PlannedObject) ([]byte, error) {
	stored, err := transfer.Download(ctx, r.Bucket, o.Name, format.SealedLimit)
	if err != nil {
		return nil, err
	}
	length := int64(o.Piece.To - o.Piece.From)
	content, err := format.Decode(r.Decoder, o.Name, stored, length)
	// Of a truncated object that is encrypted, age mostly can't say more than that it is altered.
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &format.ObjectError{Name: o.Name, What: format.Truncated, Err: err}
	}
	if err != nil {
		return nil, err
	}
	if int64(len(content)) < length {
		return nil, &format.ObjectError{Name: o.Name, What: format.Altered,
			Err: fmt.Errorf("it has %d of its %d bytes", len(content), length)}
	}
	if err := format.CheckPage(content, o.Piece, r.System); err != nil {
		return nil, &format.ObjectError{Name: o.Name, What: format.Altered, Err: err}
	}
	return content, nil
}

// Replan plans segments anew of which a part was replaced meanwhile, for RecoverOptions.Again.
func Replan(b bucket.Bucket, choice Choice) func(context.Context, wal.Segment) ([]PlannedObject, error) {
	return func(ctx context.Context, s wal.Segment) ([]PlannedObject, error) {
		catalogue, err := Read(ctx, b)
		if err != nil {
			return nil, err
		}
		plan, err := catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(plan.Segments, func(p PlannedSegment) bool { return p.Segment.Number == s.Number })
		if i < 0 {
			return nil, fmt.Errorf("plan %s anew: the archive has it no more", s)
		}
		return plan.Segments[i].Objects, nil
	}
}
