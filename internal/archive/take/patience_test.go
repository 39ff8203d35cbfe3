package take

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// taker is a backup under way that writes to a bucket.
func taker(t *testing.T, to bucket.Bucket) *taking {
	t.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	w := &taking{TakeOptions: TakeOptions{Encoder: encoder, Bucket: to}, ctx: t.Context()}
	w.backup = format.Backup{ID: "20261120T031500Z-3f2a"}
	return w
}

// awayFor has a bucket fail for so long, and counts how often it is asked meanwhile.
func awayFor(m *buckettest.Memory, d time.Duration, err error) (tries *int) {
	begin, tries := time.Now(), new(int)
	m.Fault = func(after bool) error {
		if after || time.Since(begin) >= d {
			return nil
		}
		*tries++
		return err
	}
	return tries
}

// holds sees that an object is there.
func holds(ctx context.Context, t *testing.T, b bucket.Bucket, name string) {
	t.Helper()
	if content, err := transfer.Download(ctx, b, name, 100); err != nil {
		t.Errorf("%q, %v", content, err)
	}
}

// A bucket that is away, in the midst of a backup or a restore, is waited for, and what says no for good is not.
func TestABucketThatIsAwayIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		away  time.Duration
		err   error
		works bool
		least time.Duration // how long it is tried
	}{
		"for a moment":                  {100 * time.Millisecond, buckettest.ErrInjected, true, 0},
		"for some minutes":              {10 * time.Minute, buckettest.ErrInjected, true, 10 * time.Minute},
		"for most of an hour":           {55 * time.Minute, buckettest.ErrInjected, true, 55 * time.Minute},
		"for hours":                     {5 * time.Hour, buckettest.ErrInjected, false, 55 * time.Minute},
		"full":                          {time.Minute, fmt.Errorf("put: %w", bucket.ErrFull), false, 0},
		"denied":                        {time.Minute, fmt.Errorf("put: %w", bucket.ErrDenied), false, 0},
		"the backup is ended meanwhile": {time.Minute, fmt.Errorf("put: %w", context.Canceled), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, begin, told := buckettest.NewMemory(), time.Now(), 0
				tries := awayFor(b, c.away, c.err)
				ctx := transfer.WithWaits(t.Context(), func(err error) {
					if told++; !errors.Is(err, buckettest.ErrInjected) {
						t.Errorf("who waits is told %v", err)
					}
				})
				_, err := taker(t, b).put(ctx, format.PieceName(format.BaseTar, 0), []byte("content"))
				took := time.Since(begin)
				if (err == nil) != c.works || took < c.least || c.least == 0 && took > time.Minute {
					t.Errorf("after %v it ends with %v", took, err)
				}
				if c.works {
					holds(ctx, t, b, format.FolderBase+"20261120T031500Z-3f2a/base.tar.00000.zst")
				}
				// Pauses grow: a bucket that is away is not asked all the time.
				if limit := 12 + int(took/time.Minute); *tries > limit ||
					errors.Is(c.err, buckettest.ErrInjected) != (told > 0) {
					t.Errorf("in %v it was tried %d times, and told %d times", took, *tries, told)
				}
			})
		})
	}
}

// An answer that gets lost does not make another's of one's own backup.json.
func TestTheEndOfABackupSurvivesALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buckettest.NewMemory()
		w := taker(t, b)
		lost := false
		b.Fault = func(after bool) error {
			if _, there := b.Objects[w.backup.Folder()+format.FileBackup]; after && there && !lost {
				lost = true
				return buckettest.ErrInjected
			}
			return nil
		}
		if err := w.finish(t.Context()); err != nil || !lost {
			t.Errorf("the error is %v", err)
		}
		w.backup.Label = "another"
		if err := w.finish(t.Context()); !errors.Is(err, bucket.ErrExists) {
			t.Errorf("over another's the error is %v", err)
		}
	})
}
