package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"toban.dev/internal/backup"
	"toban.dev/internal/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// archiveInterval is how often the leader looks for WAL to archive.
const archiveInterval = 500 * time.Millisecond

// archiveLoop archives the WAL while this instance leads. It is apart from
// everything else: a bucket that is away must not slow anything down.
func (a *Agent) archiveLoop(ctx context.Context) error {
	for {
		if to, lineage, r := a.archiveTask(); r != nil {
			if err := a.archive(ctx, r, to, lineage); err != nil {
				a.notArchived(err)
			}
		} else {
			a.reportArchive(nil)
		}
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
}

// notArchived reports why nothing is archived, once for each reason.
func (a *Agent) notArchived(err error) {
	now := &protocol.ArchiveStatus{Reason: archiveReason(err), Error: err.Error(), Since: time.Now()}
	if was := a.Status().Archive; was != nil && was.Reason != "" {
		if now.Since = was.Since; was.Reason == now.Reason && was.Error == now.Error {
			return
		}
	}
	a.Log.Warn("the WAL is not archived", "error", err.Error())
	a.reportArchive(now)
}

// archiveTask is what to archive and where to; the server is nil where there is nothing to do.
func (a *Agent) archiveTask() (protocol.Archive, []ha.Start, *running) {
	to, m, r := a.currentConfig().Archive, a.memory.Get(), a.leading()
	if to == nil || r == nil || m.Won != m.Ballot.Term || len(m.Lineage) == 0 || m.Lineage[len(m.Lineage)-1].Timeline == 0 {
		return protocol.Archive{}, nil, nil
	}
	return *to, m.Lineage, r
}

// archive archives to one place in one term, until either changes.
func (a *Agent) archive(ctx context.Context, r *running, to protocol.Archive, lineage []ha.Start) error {
	source := &walSource{running: r}
	defer source.close()
	// The tender does it now and then; until then nothing would keep the WAL.
	keep := func(s Session) error { return s.EnsureSlot(ctx, postgres.SlotArchive) }
	if err := source.ask(ctx, keep); err != nil {
		return err
	}
	archiver, err := a.newArchiver(ctx, source, to, lineage)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for sleep(ctx, archiveInterval) {
			now, still, leading := a.archiveTask()
			if leading != r || !reflect.DeepEqual(now, to) || !reflect.DeepEqual(still, lineage) {
				stop()
			}
		}
	}()
	a.Log.Info("archiving the WAL", "path", to.Path, "term", lineage[len(lineage)-1].Term)
	archiver.Run(ctx, archiveInterval)
	return nil
}

func (a *Agent) newArchiver(ctx context.Context, source backup.Source, to protocol.Archive, lineage []ha.Start) (*backup.Archiver, error) {
	b, err := bucket.Open(ctx, a.withIdentity(to.Bucket))
	if err != nil {
		return nil, err
	}
	sealer, err := backup.NewSealer(to.Recipient)
	if err != nil {
		return nil, err
	}
	b, config := bucket.Sub(b, to.Path), a.currentConfig()
	owner := backup.Owner{UID: to.Owner, Namespace: config.Namespace, Name: config.Cluster, SystemIdentifier: a.Status().SystemIdentifier}
	return backup.NewArchiver(backup.ArchiverOptions{
		Bucket: b, Owner: owner, Sealer: sealer, Source: source, Lineage: lineage, Changed: a.archived,
	})
}

// archived takes how far the archive is.
func (a *Agent) archived(s backup.State) {
	status := &protocol.ArchiveStatus{LSN: s.Archived.String(), LagBytes: s.Lag(), Since: s.Since}
	if s.Archived == 0 {
		status.LSN = ""
	}
	if s.Lag() > 0 && !s.ArchivedAt.IsZero() {
		status.LagSeconds = time.Since(s.ArchivedAt).Seconds()
	}
	if s.Gap != nil {
		status.Gap = s.Gap.String()
	}
	if s.Err != nil {
		status.Reason, status.Error = archiveReason(s.Err), s.Err.Error()
	}
	a.reportArchive(status)
}

func (a *Agent) reportArchive(status *protocol.ArchiveStatus) {
	if status == nil && a.Status().Archive == nil {
		return
	}
	a.report(func(s *protocol.Status) { s.Archive = status })
}

func archiveReason(err error) string {
	switch {
	case errors.Is(err, backup.ErrTaken):
		return protocol.ArchiveTaken
	case errors.Is(err, backup.ErrReplaces):
		return protocol.ArchiveUnfit
	}
	return protocol.ArchiveFailing
}

// withIdentity shows the instance's own certificate to a volume's server.
func (a *Agent) withIdentity(config bucket.Config) bucket.Config {
	if config.Volume != nil && config.Credentials == "" {
		config.Credentials = filepath.Join(a.Options.Run, folderIdentity)
	}
	return config
}

// archivePosition is up to where the WAL is in the archive, as the leader says, "" if that is not known.
func (a *Agent) archivePosition() string {
	status := a.Status()
	if ballot := a.memory.Get().Ballot; ballot.Leader != a.Name {
		status, _ = a.peers.last(ballot.Leader)
	}
	if status.Archive == nil {
		return ""
	}
	return status.Archive.LSN
}

// letWALGo lets the server remove what is archived. Every instance keeps it until
// then: any of them may be the next to archive.
func (a *Agent) letWALGo(ctx context.Context, session Session) error {
	position := a.archivePosition()
	if a.currentConfig().Archive == nil || position == "" {
		return nil
	}
	lsn, err := ha.ParseLSN(position)
	if err != nil {
		return fmt.Errorf("understand how far the archive is: %w", err)
	}
	return session.AdvanceSlot(ctx, postgres.SlotArchive, backup.State{Archived: lsn}.Slot().String())
}

// withArchive adds the slot of the archive to others, where there is one.
func (a *Agent) withArchive(slots []string) []string {
	if a.currentConfig().Archive == nil {
		return slots
	}
	return append(slots, postgres.SlotArchive)
}

// walSource is the WAL of the running server, looked at with a session of its own.
type walSource struct {
	*running
	mutex   sync.Mutex
	session Session
}

func (w *walSource) close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
}

// ask asks the server, with a new session where there is none that works.
func (w *walSource) ask(ctx context.Context, question func(Session) error) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.session == nil || w.session.Broken() {
		session, err := w.server.Connect(ctx)
		if err != nil {
			return err
		}
		w.session = session
	}
	return question(w.session)
}

// Flushed is up to where the WAL is on disk.
func (w *walSource) Flushed(ctx context.Context) (lsn ha.LSN, err error) {
	err = w.ask(ctx, func(s Session) error {
		text, err := s.FlushedWAL(ctx)
		if err != nil {
			return err
		}
		lsn, err = ha.ParseLSN(text)
		return err
	})
	return lsn, err
}

// Oldest is where the oldest segment begins that there is.
func (w *walSource) Oldest(ctx context.Context) (lsn ha.LSN, err error) {
	err = w.ask(ctx, func(s Session) error {
		file, size, err := s.OldestWAL(ctx)
		if err != nil {
			return err
		}
		lsn, err = ha.SegmentStart(file, size)
		return err
	})
	return lsn, err
}

// Open opens a segment by its name.
func (w *walSource) Open(name string) (backup.File, error) { return w.server.OpenWAL(name) }

// History is the content of a timeline's history file.
func (w *walSource) History(timeline uint32) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(w.server.Data(), "pg_wal", backup.HistoryFile(timeline)))
	if err != nil {
		return nil, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
	}
	return text, nil
}
