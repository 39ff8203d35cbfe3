package keep

import (
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/wal"
)

// World is for the tests of package keep_test, which copy its archive.
type World = world

// NewWorld makes one of a seed.
func NewWorld(t *testing.T, seed uint64) *World { return newWorld(t, seed) }

// T is the test.
func (w *world) T() *testing.T { return w.t }

// Bucket is the archive.
func (w *world) Bucket() *buckettest.Memory { return w.bucket }

// Step has something happen.
func (w *world) Step() { w.step() }

// Fatal ends the test with all that has happened.
func (w *world) Fatal(format string, args ...any) {
	w.t.Helper()
	w.fatal(format, args...)
}

// TwiceTheSameTimeline is an archive with two branches.
func TwiceTheSameTimeline() book.Catalogue { return twiceTheSameTimeline() }

// AddWAL adds a segment to one.
func AddWAL(c *book.Catalogue, term uint64, timeline wal.Timeline, number int, at time.Time) {
	addWAL(c, term, timeline, number, at)
}
