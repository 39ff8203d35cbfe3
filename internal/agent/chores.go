package agent

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/backup"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// choreInterval is how often the slow chores are done.
const choreInterval = 10 * time.Second

// chores are what is to be done with a server now and then. Only the monitor uses them.
type chores struct {
	config func() protocol.Config
	// slots are those of the other members, archived is up to where the WAL is in the archive, "" if that is not known.
	slots    func() []string
	archived func() string
	done     time.Time // when they were last done
	archives bool      // the slot of the archive was among those that were kept then
}

// choreSession is by what they are done: a postgres.Session.
type choreSession interface {
	ProveWrite(ctx context.Context) error
	EnsureReplication(ctx context.Context) error
	CloseMaintenance(ctx context.Context) error
	EnsureSlots(ctx context.Context, want []string) error
	AdvanceSlot(ctx context.Context, slot, lsn string) error
	OldestWAL(ctx context.Context) (wal.LSN, error)
}

// ofPrimary does what a primary has to do besides taking writes: it proves that they work, keeps the standbys'
// role and slots, keeps applications out of the database postgres, and looks how far back the WAL goes, which is
// "" where nothing was due.
func (c *chores) ofPrimary(ctx context.Context, session choreSession) (oldest string, err error) {
	if !c.due() {
		return "", nil
	}
	if err := session.ProveWrite(ctx); err != nil {
		return "", err
	}
	if err := session.EnsureReplication(ctx); err != nil {
		return "", err
	}
	if err := session.CloseMaintenance(ctx); err != nil {
		return "", err
	}
	if err := c.keepSlots(ctx, session, c.slots()); err != nil {
		return "", err
	}
	start, err := session.OldestWAL(ctx)
	if err != nil {
		return "", err
	}
	c.done = time.Now()
	return start.String(), nil
}

// ofStandby removes the slots of a former primary, which would keep WAL for ever.
func (c *chores) ofStandby(ctx context.Context, session choreSession) error {
	if !c.due() {
		return nil
	}
	if err := c.keepSlots(ctx, session, nil); err != nil {
		return err
	}
	c.done = time.Now()
	return nil
}

// due says that it is time, or that there is a new archive: until its slot is there, nothing keeps the WAL for it.
func (c *chores) due() bool {
	return time.Since(c.done) > choreInterval || c.archives != (c.config().Archive != nil)
}

// keepSlots makes the slots there are to be, and lets go of the WAL that is archived.
func (c *chores) keepSlots(ctx context.Context, session choreSession, slots []string) error {
	archives := c.config().Archive != nil
	if err := session.EnsureSlots(ctx, withArchive(c.config(), slots)); err != nil {
		return err
	}
	c.archives = archives
	return c.letWALGo(ctx, session)
}

// letWALGo lets the server remove what is archived. Every instance keeps it until
// then: any of them may be the next to archive.
func (c *chores) letWALGo(ctx context.Context, session choreSession) error {
	position := c.archived()
	if c.config().Archive == nil || position == "" {
		return nil
	}
	lsn, err := wal.ParseLSN(position)
	if err != nil {
		return fmt.Errorf("understand how far the archive is: %w", err)
	}
	return session.AdvanceSlot(ctx, postgres.SlotArchive, backup.State{Archived: lsn}.Slot().String())
}

// withArchive adds the slot of the archive to others, where there is one.
func withArchive(config protocol.Config, slots []string) []string {
	if config.Archive == nil {
		return slots
	}
	return append(slots, postgres.SlotArchive)
}
