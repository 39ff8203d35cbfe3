// Package archive puts the WAL of a leader into the archive of its SampleDB, as it is written.
package archive

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/httppath"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

const (
	// archiveInterval is how often the leader looks for WAL to archive.
	archiveInterval = 500 * time.Millisecond
	// finishPatience is how long the last WAL of a server that has stopped may take.
	finishPatience = 15 * time.Second
)

// Source is the WAL of a server that is a primary.
type Source interface {
	write.Source
	// Keep has the server keep WAL until it is archived.
	Keep(ctx context.Context) error
	// Secret is what only this database system knows.
	Secret(ctx context.Context) ([]byte, error)
	// Close ends what was opened to look at it.
	Close()
}

// Primary is a server that is a primary.
type Primary interface {
	WAL() Source
	// Ended is closed when the server is being ended.
	Ended() <-chan struct{}
}

// Loop archives the WAL of one instance while it leads.
type Loop struct {
	Config func() protocol.Config
	// HardState is what the instance has promised.
	HardState func() ha.HardState
	// Primary is the server that runs, nil while it is no primary.
	Primary func() Primary
	// Status takes how far the archive is.
	Status *status.Board
	// Identity is the folder with the instance's certificate, for a volume's server.
	Identity string
	// Way is how the store is reached.
	Way *httppath.Path
	Log *slog.Logger

	working sync.Mutex // while it archives
	last    work       // what it has archived last
}

// work is what an archiver does: the WAL of a primary, to one place.
type work struct {
	archiver *write.Archiver
	of       Primary
	to       protocol.Archive
}

// Run archives the WAL while this instance leads. It is apart from
// everything else: a bucket that is away must not slow anything down.
func (l *Loop) Run(ctx context.Context) error {
	for {
		if to, history, r := l.task(); r != nil {
			if err := l.archive(ctx, r, to, history); err != nil {
				l.notArchived(to, err)
			}
		} else {
			l.report(nil)
		}
		if !pause.Every(ctx, time.Second) {
			return nil
		}
	}
}

// notArchived reports why nothing is archived, once for each reason.
func (l *Loop) notArchived(to protocol.Archive, err error) {
	now := &protocol.ArchiveStatus{
		Place: to.Place(), Reason: archiveReason(err), Error: err.Error(), Since: time.Now(),
	}
	if was := l.Status.Get().Archive; was != nil && was.Reason != "" && was.Place == now.Place {
		if now.Since = was.Since; was.Reason == now.Reason && was.Error == now.Error {
			return
		}
	}
	l.Log.Warn("the WAL is not archived", "error", err.Error())
	l.report(now)
}

// task is what to archive and where to; the server is nil where there is nothing to do.
func (l *Loop) task() (protocol.Archive, []ha.TermStart, Primary) {
	to, history, r := l.Config().Archive, l.history(), l.Primary()
	if to == nil || r == nil || history == nil {
		return protocol.Archive{}, nil, nil
	}
	return *to, history, r
}

// history is the term history of a leader, nil where the instance is none, or its timeline is not known yet.
func (l *Loop) history() []ha.TermStart {
	m := l.HardState()
	if m.Won != m.Ballot.Term || len(m.TermHistory) == 0 || m.TermHistory[len(m.TermHistory)-1].Timeline == 0 {
		return nil
	}
	return m.TermHistory
}

// archive archives to one place in one term, until either changes.
func (l *Loop) archive(ctx context.Context, r Primary, to protocol.Archive, history []ha.TermStart) error {
	l.working.Lock()
	defer l.working.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go l.watch(ctx, stop, r, to, history)
	source := r.WAL()
	defer source.Close()
	// The monitor does it now and then; until then nothing would keep the WAL.
	if err := source.Keep(ctx); err != nil {
		return err
	}
	archiver, err := l.newArchiver(ctx, source, to, history)
	if err != nil {
		return err
	}
	l.last = work{archiver, r, to}
	l.Log.Info("archiving the WAL", "path", to.Path, "term", history[len(history)-1].Term)
	archiver.Run(ctx, archiveInterval)
	return nil
}

// watch stops what archives for a primary when that ends, or when there is another task.
func (l *Loop) watch(ctx context.Context, stop func(), r Primary, to protocol.Archive, history []ha.TermStart) {
	defer stop()
	look := time.NewTicker(archiveInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Ended():
			return
		case <-look.C:
			now, still, leading := l.task()
			if leading != r || !reflect.DeepEqual(now, to) || !reflect.DeepEqual(still, history) {
				return
			}
		}
	}
}

// Finish archives what is left of the WAL of a primary that has stopped in order, up to its end. What was committed a
// moment ago waits in no segment for a next start, which may never come. An archive that has failed is not waited for:
// a restart must not take longer because of it.
//
// The primary may have promised a later term since. It writes where it has always written, in the folder of its own
// term, which history ends with: a leader of a later term says up to where that counts.
func (l *Loop) Finish(ctx context.Context, r Primary, history []ha.TermStart, end wal.LSN) error {
	ctx, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	l.working.Lock() // it has ended then what it did for this primary
	defer l.working.Unlock()
	to := l.Config().Archive
	if to == nil {
		return nil
	}
	if w := l.last; w.of != r || !reflect.DeepEqual(w.to, *to) { // it has led for a moment only
		archiver, err := l.newArchiver(ctx, r.WAL(), *to, history)
		if err != nil {
			return err
		}
		l.last = work{archiver, r, *to}
	}
	if err := l.last.archiver.Finish(ctx, end); err != nil {
		return err
	}
	l.Log.Info("the WAL is archived to its end", "lsn", end.String())
	return nil
}

func (l *Loop) newArchiver(
	ctx context.Context, source Source, to protocol.Archive, history []ha.TermStart,
) (*write.Archiver, error) {
	b, err := bucket.Open(ctx, l.reaching(to.Bucket))
	if err != nil {
		return nil, err
	}
	encoder, err := format.NewEncoder(to.Recipient)
	if err != nil {
		return nil, err
	}
	secret, err := source.Secret(ctx)
	if err != nil {
		return nil, err
	}
	b, config := bucket.Sub(b, to.Path), l.Config()
	owner := format.Owner{
		UID: to.Owner, Namespace: config.Namespace, Name: config.Cluster,
		SystemIdentifier: l.Status.Get().SystemIdentifier,
	}
	return write.NewArchiver(write.ArchiverOptions{
		Bucket: b, Owner: owner, Encoder: encoder, Source: source, TermHistory: history, MaxLag: to.MaxLag,
		Secret: secret, Changed: func(s write.State) { l.archived(to, s) },
	})
}

// archived takes how far an archive is.
func (l *Loop) archived(to protocol.Archive, s write.State) {
	status := &protocol.ArchiveStatus{Place: to.Place(), LSN: s.Archived.String(), LagBytes: s.Lag(),
		LagSeconds: s.Behind.Seconds(), Since: s.Since}
	if s.Archived == 0 {
		status.LSN = ""
	}
	if s.Gap != nil {
		status.Gap, status.GapEnd = s.Gap.String(), s.Gap.To.String()
	}
	if s.Err != nil {
		status.Reason, status.Error = archiveReason(s.Err), s.Err.Error()
	}
	l.report(status)
}

func (l *Loop) report(status *protocol.ArchiveStatus) {
	if status == nil && l.Status.Get().Archive == nil {
		return
	}
	l.Status.Change(func(s *protocol.Status) { s.Archive = status })
}

func archiveReason(err error) string {
	ahead := (*write.AheadError)(nil)
	switch {
	case errors.As(err, &ahead):
		return protocol.ArchiveAhead
	case errors.Is(err, format.ErrTaken):
		return protocol.ArchiveTaken
	case errors.Is(err, format.ErrReplaces):
		return protocol.ArchiveUnfit
	case errors.Is(err, bucket.ErrFull):
		return protocol.ArchiveFull
	}
	return protocol.ArchiveFailing
}

// reaching is how this instance reaches a bucket: by its way, and to a volume's server with its own certificate.
func (l *Loop) reaching(config bucket.Config) bucket.Config {
	config.Way = l.Way
	if config.Volume != nil && config.Credentials == "" {
		config.Credentials = l.Identity
	}
	return config
}
