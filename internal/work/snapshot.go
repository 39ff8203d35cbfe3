package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

const (
	// cutPatience is how long a session waits until the snapshot is cut: some drivers have a queue. Other backups wait
	// meanwhile.
	cutPatience = 10 * time.Minute
	// sessionInterval is how often it is looked meanwhile whether the session holds.
	sessionInterval = 2 * time.Second
)

// errNotCut says that nobody has said in time that the snapshot is cut.
var errNotCut = fmt.Errorf("the snapshot of the volume was not cut within %s", cutPatience)

// awaitedCut is the snapshot that a session waits for.
type awaitedCut struct {
	mu      sync.Mutex
	session string // "" while none waits
	done    chan struct{}
}

// begin has a session wait for its cut.
func (c *awaitedCut) begin(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.done = session, make(chan struct{})
	return c.done
}

// tell notes that a snapshot is cut. It says whether it is that of the session which waits.
func (c *awaitedCut) tell(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session == "" || c.session != session {
		return false
	}
	select {
	case <-c.done: // it was told before
	default:
		close(c.done)
	}
	return true
}

// onCut takes the word of the operator that the snapshot is cut.
func (t *taking) onCut(w http.ResponseWriter, request *http.Request) {
	var cut protocol.Cut
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, 1<<10)).Decode(&cut); err != nil {
		http.Error(w, "understand what is cut: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !t.cut.tell(cut.Session) {
		http.Error(w, "no session of that id waits for a snapshot", http.StatusConflict)
		return
	}
	t.Progress.Answer(w, request)
}

// takeSnapshot has a snapshot of the primary's volume cut, while the server is in a backup. Nothing in the archive is
// changed.
func (t *taking) takeSnapshot(ctx context.Context) error {
	catalogue, err := book.ReadWAL(ctx, t.archive)
	if err != nil {
		return err
	}
	history := catalogue.NewestTermHistory()
	if len(history) == 0 {
		return errors.New("the archive has no WAL yet")
	}
	t.Progress.Set(protocol.BackupProgress{Step: "looks for the primary"})
	host, err := t.choose(ctx, true)
	if err != nil {
		return err
	}
	t.result.Instance, _, _ = strings.Cut(host, ".")
	snapshot, err := t.inSession(ctx, host, history[len(history)-1].Term)
	if err != nil {
		return err
	}
	t.Progress.Set(protocol.BackupProgress{Instance: t.result.Instance})
	if snapshot.Term, err = t.awaitWAL(ctx, nil, snapshot.StopTimeline, snapshot.StopLSN); err != nil {
		return fmt.Errorf("wait until the WAL up to %s is archived: %w", snapshot.StopLSN, err)
	}
	if err := t.usable(ctx, snapshot.Backup); err != nil {
		return err
	}
	t.reportSnapshot(snapshot)
	return nil
}

// inSession begins a backup at a host, waits until the volume is cut, and stops it.
func (t *taking) inSession(ctx context.Context, host string, term uint64) (format.Snapshot, error) {
	step := "begins a backup: waits for a checkpoint"
	t.Progress.Set(protocol.BackupProgress{Instance: t.result.Instance, Step: step})
	session, err := take.BeginSession(ctx, take.SessionOptions{
		Server: t.connection(host), Term: term, Trigger: t.trigger, System: t.owner.SystemIdentifier,
		Volume: naming.PathVolume,
	})
	if err != nil {
		return format.Snapshot{}, err
	}
	defer session.Close()
	t.Log.Info("waits for the snapshot of the volume", "from", host, "term", term, "session", session.ID())
	if err := t.awaitCut(ctx, session); err != nil {
		return format.Snapshot{}, err
	}
	return session.Stop(ctx)
}

// awaitCut waits until the operator says that the snapshot is cut which the session asks for.
func (t *taking) awaitCut(ctx context.Context, session *take.Session) error {
	cut := t.cut.begin(session.ID())
	t.Progress.Set(protocol.BackupProgress{
		Instance: t.result.Instance, Step: "waits until the snapshot of the volume of " + t.result.Instance + " is cut",
		Session: session.ID(),
	})
	ctx, cancel := context.WithTimeoutCause(ctx, cutPatience, errNotCut)
	defer cancel()
	ticker := time.NewTicker(sessionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-cut:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if err := session.Holds(ctx); err != nil {
			return err
		}
	}
}

// reportSnapshot puts into the result what was cut.
func (t *taking) reportSnapshot(s format.Snapshot) {
	r := &t.result
	r.Archive, r.Store = t.settings.Archive.Path, t.settings.Archive.Bucket.Place()
	r.StartLSN, r.StopLSN = s.StartLSN.String(), s.StopLSN.String()
	r.ServerVersion, r.SystemIdentifier = s.ServerVersion, s.SystemIdentifier
	r.Started, r.Stopped = s.Started, s.Stopped
	r.Snapshot = &protocol.Snapshot{
		ID: s.ID, Label: s.BackupLabel, Term: s.Term, Timeline: uint32(s.StartTimeline),
		StartLSN: r.StartLSN, StopLSN: r.StopLSN, Stopped: wholeSecond(s.Stopped),
		ServerVersion: s.ServerVersion, SystemIdentifier: s.SystemIdentifier,
	}
}

// snapshotBackup is a snapshot as the archive's rules know it.
func snapshotBackup(s protocol.Snapshot) (format.Snapshot, error) {
	start, err := wal.ParseLSN(s.StartLSN)
	if err != nil {
		return format.Snapshot{}, fmt.Errorf("understand the snapshot %s: %w", s.ID, err)
	}
	stop, err := wal.ParseLSN(s.StopLSN)
	if err != nil {
		return format.Snapshot{}, fmt.Errorf("understand the snapshot %s: %w", s.ID, err)
	}
	timeline := wal.Timeline(s.Timeline)
	return format.Snapshot{BackupLabel: s.Label, Backup: format.Backup{
		ID: s.ID, Type: format.TypeSnapshot, Term: s.Term, Started: s.Stopped, Stopped: s.Stopped,
		StartLSN: start, StopLSN: stop, StartTimeline: timeline, StopTimeline: timeline,
		ServerVersion: s.ServerVersion, SystemIdentifier: s.SystemIdentifier,
	}}, nil
}

// snapshotBackups are those whose WAL retention keeps.
func snapshotBackups(all []protocol.Snapshot) ([]format.Backup, error) {
	var out []format.Backup
	for _, s := range all {
		b, err := snapshotBackup(s)
		if err != nil {
			return nil, err
		}
		out = append(out, b.Backup)
	}
	return out, nil
}
