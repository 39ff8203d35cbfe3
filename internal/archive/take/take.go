// Package take takes base backups of a server, full ones and what has changed since, puts them into an archive in
// pieces, and proves that they can be read back; and it begins and ends the backup around the snapshot of a volume.
package take

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

// PointsOfTake are the names that TakeOptions.At is called with, in this order, "piece" several times.
var PointsOfTake = []string{"connected", "started", "piece", "pieces", "manifest", "wal", "written"}

// TakeOptions say what a base backup is taken of, and where it goes.
type TakeOptions struct {
	// Server is whom to ask, as a role with REPLICATION. Without a tcp_user_timeout: while
	// the bucket is slow, the connection is full, and Linux counts that as no answer.
	Server *pgconn.Config
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Encoder *format.Encoder
	// Term is the archive's newest when it begins; see Archived. Label and Trigger are for backup.json.
	Term           uint64
	Label, Trigger string
	// SampleDB is the manifest of the object that is backed up, in JSON, nil for none: it brings that back where
	// nothing but the bucket is left.
	SampleDB []byte
	// Parent is what an incremental backup is the change from, nil for a full one. It needs PostgreSQL 17
	// with summarize_wal. Decoder reads its manifest, with encryption by the key; an error is ErrNoIncrement
	// where none can be taken.
	Parent  *format.Backup
	Decoder *format.Decoder
	// System is the system identifier of the archive, "" for any: nothing is taken of another database system.
	System string
	// Prove has the Decoder read, before the backup counts, what a restore would begin with.
	Prove bool
	// Workers compress and upload side by side; 0 is Streams. Each needs at most
	// about 100 MiB: a piece, the same compressed, and the same encrypted; one piece more is being filled.
	Workers int
	// PieceSize is how much goes into one object. 0 is the constant of that name; tests have many small pieces.
	PieceSize int
	// Archived returns when the WAL of a timeline up to an LSN is in the archive, and the term whose leader wrote what
	// is before that, 0 where it does not know. That is the term in which the backup was taken, and not Term: a leader
	// that had just begun when that was looked up had not told the archive yet.
	Archived func(ctx context.Context, timeline wal.Timeline, lsn wal.LSN) (term uint64, err error)
	// Clock, if set, is that by which transactions are committed. Where it does not answer, it is this machine's.
	Clock func(ctx context.Context) (time.Time, error)
	// Progress, if set, is called at most five times a second, not by several at once.
	Progress func(transfer.Progress)
	// At, if set, is called at each of PointsOfTake; an error ends the backup there. For
	// tests; "piece" comes from several at once.
	At func(point string) error
}

// taking is a base backup being taken.
type taking struct {
	TakeOptions
	backup format.Backup
	meter  *transfer.Meter

	buffers chan []byte // free ones; their number bounds the memory
	group   *errgroup.Group
	ctx     context.Context //nolint:containedctx // that of the group: sink has no room for one
	mutex   sync.Mutex      // guards the sums of the backup
	listing sync.Mutex      // guards pieces, also while a list of them is written
	pieces  lister
	begins  []format.Object // the first piece of each tar file

	current  []byte // what the next piece consists of so far
	tar      string // the archive being received, "" for none
	number   int    // of its next piece
	all      int    // pieces of all tar files so far
	wantsTar bool   // false from the manifest on
	text     *manifestWriter
}

// Take takes a base backup and returns what it has written to backup.json. The error is ErrPromoted
// when the server was promoted meanwhile, ErrDamaged where its data is. What a backup that did not end leaves is for
// Clean.
func Take(ctx context.Context, o TakeOptions) (format.Backup, error) {
	if o.Workers <= 0 {
		o.Workers = transfer.Streams()
	}
	t := &taking{TakeOptions: o, wantsTar: true, buffers: make(chan []byte, o.Workers+1)}
	t.pieces.put = func(name string, text []byte) (format.Object, error) { return t.store(t.ctx, name, text) }
	for range o.Workers + 1 {
		t.buffers <- nil // made when needed: a small database needs one
	}
	t.backup = format.Backup{
		ID: newID(time.Now()), Type: format.TypeFull,
		Term: o.Term, Label: o.Label, Trigger: o.Trigger, Started: time.Now().UTC(), Recipient: o.Encoder.Recipient(),
	}
	if o.Parent != nil {
		t.backup.Type, t.backup.Parent = format.TypeIncremental, o.Parent.ID
	}
	if err := t.run(ctx); err != nil {
		return format.Backup{}, fmt.Errorf("base backup %s: %w", t.backup.ID, err)
	}
	return t.backup, nil
}

// newID is a name of a base backup: when, and something that no other has.
func newID(now time.Time) string {
	var unique [2]byte
	_, _ = rand.Read(unique[:]) // never fails
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(unique[:])
}

func (t *taking) run(ctx context.Context) error {
	if err := t.receive(ctx); err != nil {
		return err
	}
	t.ctx = ctx // the group's has ended with it
	if err := t.point("pieces"); err != nil {
		return err
	}
	if t.text == nil {
		return errors.New("the server has sent no manifest")
	}
	t.backup.RawBytes += t.text.raw
	if err := errors.Join(t.text.end(&t.backup), t.pieces.end(&t.backup)); err != nil {
		return err
	}
	if err := t.putSampleDB(ctx); err != nil {
		return err
	}
	if err := t.point("manifest"); err != nil {
		return err
	}
	term, err := t.Archived(ctx, t.backup.StopTimeline, t.backup.StopLSN)
	if err != nil {
		return fmt.Errorf("wait until the WAL up to %s is archived: %w", t.backup.StopLSN, err)
	}
	t.backup.Term = cmp.Or(term, t.backup.Term)
	if err := t.point("wal"); err != nil {
		return err
	}
	if t.Prove {
		if err := t.prove(ctx); err != nil {
			return fmt.Errorf("read it back, as a restore would: %w", err)
		}
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	return t.point("written")
}

// receive has the server send the backup; all pieces are in the bucket afterwards.
func (t *taking) receive(ctx context.Context) error {
	t.group, t.ctx = errgroup.WithContext(ctx)
	// The connection ends with the first upload that fails.
	s, err := openStream(t.ctx, t.Server)
	if err != nil {
		return err
	}
	defer s.close()
	err = t.copyFrom(s)
	if uploaded := t.group.Wait(); uploaded != nil {
		return uploaded // it is why the connection ended
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		t.meter.End()
	}
	return err
}

func (t *taking) copyFrom(s *stream) (err error) {
	if t.backup.SystemIdentifier, err = s.identity(); err != nil {
		return err
	}
	if t.System != "" && t.System != t.backup.SystemIdentifier {
		return fmt.Errorf("the server is of the database system %s, and the archive of %s: nothing is copied",
			t.backup.SystemIdentifier, t.System)
	}
	t.backup.ServerVersion = s.version()
	if err := t.point("connected"); err != nil {
		return err
	}
	if t.Parent != nil {
		if err := t.continueParent(s); err != nil {
			return err
		}
	}
	if err := t.start(s); err != nil {
		return err
	}
	if err := s.copyOut(t); err != nil {
		return err
	}
	return t.stop(s)
}

// continueParent makes the next backup of the connection the change from the parent.
func (t *taking) continueParent(s *stream) error {
	if t.Parent.SystemIdentifier != t.backup.SystemIdentifier {
		return fmt.Errorf("the parent %s is of another database system (%s)", t.Parent.ID, t.Parent.SystemIdentifier)
	}
	manifest, err := book.OpenManifest(t.ctx, t.Bucket, t.Decoder, *t.Parent)
	if err == nil {
		defer manifest.Close()
		err = s.uploadManifest(manifest)
	}
	if err != nil && t.ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrNoIncrement, err)
	}
	return err
}

// command is BASE_BACKUP. WAIT is off: it would wait for PostgreSQL's own archiver, not for ours. TARGET asks for the
// protocol that one copy has all in it. The files' checksums are what costs the server least: that an object of the
// archive is what was written is seen by its SHA-256.
func (t *taking) command() string {
	options := []string{"LABEL 'toban " + t.backup.ID + "'", "PROGRESS", "CHECKPOINT 'fast'", "WAIT false",
		"MANIFEST 'yes'", "MANIFEST_CHECKSUMS '" + format.ManifestChecksums + "'", "TARGET 'client'"}
	if t.Parent != nil {
		options = append(options, "INCREMENTAL")
	}
	return "BASE_BACKUP (" + strings.Join(options, ", ") + ")"
}

// start begins the backup: the server says from where, and how much there is.
func (t *taking) start(s *stream) (err error) {
	if err := s.send(t.command()); err != nil {
		return err
	}
	t.backup.StartLSN, t.backup.StartTimeline, err = s.position()
	if t.Parent != nil && refusedIncrement(err) {
		return fmt.Errorf("%w: %w", ErrNoIncrement, err)
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	spaces, err := s.result()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	total := int64(0)
	for _, row := range spaces { // OID, location, size in KiB; the data directory has no OID
		if len(row) != 3 {
			return fmt.Errorf("start: the server describes a tablespace as %q", row)
		}
		kib, _ := strconv.ParseInt(row[2], 10, 64) // an estimate; it may be unknown
		total += kib << 10
	}
	t.meter = transfer.NewMeter(t.Progress, total)
	return t.point("started")
}

// position is the result set with an LSN and a timeline.
func (s *stream) position() (wal.LSN, wal.Timeline, error) {
	rows, err := s.result()
	if err != nil {
		return 0, 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return 0, 0, fmt.Errorf("the server says %q for a position", rows)
	}
	lsn, err := wal.ParseLSN(rows[0][0])
	if err != nil {
		return 0, 0, err
	}
	timeline, err := strconv.ParseUint(rows[0][1], 10, 32)
	return lsn, wal.Timeline(timeline), err
}

// stop reads where the backup ends.
func (t *taking) stop(s *stream) (err error) {
	t.backup.StopLSN, t.backup.StopTimeline, err = s.position()
	if err == nil {
		err = s.ready()
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	t.backup.Stopped = t.clock(time.Now()).UTC()
	return nil
}

// ServerClock is the time of a server in SQL, as RFC 3339 has it.
const ServerClock = "pg_catalog.to_char(pg_catalog.clock_timestamp() at time zone 'UTC', " +
	`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

// clock is the later time of this machine's clock and that of the server: what is in the backup was committed by then.
func (t *taking) clock(own time.Time) time.Time {
	if t.Clock == nil {
		return own
	}
	at, err := t.Clock(t.ctx)
	if err != nil || at.Before(own) {
		return own
	}
	return at
}

// finish writes backup.json, if everything is still there: a later backup may have
// taken this one for one that did not end, and cleaned it away.
func (t *taking) finish(ctx context.Context) error {
	if err := transfer.Patiently(ctx, func() error { return t.seeAll(ctx) }); err != nil {
		return err
	}
	text, err := json.MarshalIndent(t.backup, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	name := t.backup.Folder() + format.FileBackup
	err = transfer.Patiently(ctx, func() error { return t.Bucket.Create(ctx, name, text) })
	if errors.Is(err, bucket.ErrExists) { // maybe by a try whose answer was lost
		if there, read := format.ReadWhole(ctx, t.Bucket, name); read == nil && bytes.Equal(there, text) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// seeAll sees that everything that was written is still there.
func (t *taking) seeAll(ctx context.Context) error {
	contents := book.NewContents(t.backup)
	for object, err := range t.Bucket.List(ctx, t.backup.Folder()) {
		if err != nil {
			return fmt.Errorf("look whether all is there: %w", err)
		}
		contents.Add(object)
	}
	if name := contents.Missing(); name != "" {
		return &format.ObjectError{Name: name, What: format.Missing}
	}
	return nil
}

func (t *taking) point(name string) error {
	if t.At == nil {
		return nil
	}
	return t.At(name)
}

// Clean removes what backups have left that did not end: all in their folders, where there is no backup.json. None may
// be under way. The bucket is rooted at the archive. Nothing is removed if the bucket can't be listed to its end.
func Clean(ctx context.Context, from bucket.Bucket) (removed []string, err error) {
	var folder []string // of one backup: a listing has them one after the other
	last, complete := "", false
	for object, err := range from.List(ctx, format.FolderBase) {
		if err != nil {
			return nil, fmt.Errorf("look for backups that did not end: %w", err)
		}
		id, name, ok := strings.Cut(strings.TrimPrefix(object.Name, format.FolderBase), "/")
		if !ok {
			continue
		}
		if id != last {
			removed = append(removed, folder...)
			folder, last, complete = nil, id, false
		}
		if complete = complete || name == format.FileBackup; complete {
			folder = nil
			continue
		}
		folder = append(folder, object.Name)
	}
	removed = append(removed, folder...)
	if err := from.Delete(ctx, removed...); err != nil {
		return nil, fmt.Errorf("remove what backups that did not end have left: %w", err)
	}
	return removed, nil
}
