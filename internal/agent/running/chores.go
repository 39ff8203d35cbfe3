package running

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"toban.dev/internal/archive/write"
	"toban.dev/internal/naming"
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
	// report says for whom the server keeps much WAL, nil for a standby.
	report func(*protocol.KeptWAL)
	// linkMost is how much WAL a slot of a link may keep in bytes, 0 where that is not known.
	linkMost func() int64
	log      *slog.Logger
	// linked takes whether slots of a link come along to a standby.
	linked   *atomic.Bool
	done     time.Time // when they were last done
	primary  bool      // the slots of a primary were made since it was a standby
	archives bool      // the slot of the archive was among those that were to be kept then
	pooler   bool      // poolers were to log in then
	refused  error     // what the server has refused then, nil for nothing
	leads    bool      // the server was a primary in the last look
}

// choreSession is by what they are done: a postgres.Session.
type choreSession interface {
	EnsureReplication(ctx context.Context) error
	EnsurePooler(ctx context.Context, wanted bool) error
	KeepMaintenance(ctx context.Context) error
	EnsureSlots(ctx context.Context, want []string) error
	EndFollowers(ctx context.Context) error
	KeepLinkSlots(ctx context.Context) (synced bool, err error)
	GiveUpLink(ctx context.Context, most int64) (dropped []string, err error)
	AdvanceSlot(ctx context.Context, slot, lsn string) error
	OldestWAL(ctx context.Context) (wal.LSN, error)
	KeptWAL(ctx context.Context, least int64) (postgres.KeptWAL, error)
}

// ofPrimary does what a primary has to do besides taking writes: it keeps the standbys' role and slots, keeps
// applications out of the database postgres, lets WAL go that is archived, and looks for whom it is kept, and how far
// back it goes, which is "" where nothing was due. Each is done though others are refused.
func (c *chores) ofPrimary(ctx context.Context, session choreSession) (oldest string, err error) {
	c.as(true)
	config := c.config()
	if !c.due(config) {
		return "", c.afterPromotion(ctx, config, session)
	}
	return oldest, c.did(config, each(
		func() error { return session.EnsureReplication(ctx) },
		func() error { return session.KeepMaintenance(ctx) },
		func() error { return session.EnsurePooler(ctx, config.Pooler) },
		func() error { return c.makeSlots(ctx, config, session) },
		func() error { return c.letWALGo(ctx, config, session) },
		func() error {
			start, err := session.OldestWAL(ctx)
			if err == nil {
				oldest = start.String()
			}
			return err
		},
		func() error { c.boundLink(ctx, session); return nil },
		func() error { c.reportKeptWAL(ctx, session); return nil },
	))
}

// afterPromotion makes the slots of the standbys: what a look at the standby before has removed is missing. What the
// server has refused is so until it is asked again.
func (c *chores) afterPromotion(ctx context.Context, config protocol.Config, session choreSession) error {
	if c.primary || c.refused != nil {
		return c.refused
	}
	err := each(
		func() error { return c.makeSlots(ctx, config, session) },
		func() error { return c.letWALGo(ctx, config, session) },
	)
	if postgres.RefusesBesides(err) {
		c.refused, c.done = err, time.Now()
	}
	return err
}

// makeSlots makes those of a primary.
func (c *chores) makeSlots(ctx context.Context, config protocol.Config, session choreSession) error {
	err := c.keepSlots(ctx, config, session, c.slots())
	c.primary = c.primary || err == nil
	return err
}

// boundLink gives a link up that keeps too much WAL. Where that fails it is tried again at the next time.
func (c *chores) boundLink(ctx context.Context, session choreSession) {
	most := c.linkMost()
	if most == 0 {
		return
	}
	dropped, err := session.GiveUpLink(ctx, most)
	if err != nil {
		c.log.Warn("a link that keeps much WAL could not be given up", "error", err.Error())
	}
	if len(dropped) > 0 {
		c.log.Warn("the other side is given up, for it keeps more WAL than the volume can spare",
			"slots", dropped, "mostBytes", most)
	}
}

// linkMost is how much WAL a slot of a link may keep, whatever a user lets other slots keep: as much as every slot by
// default (max_slot_wal_keep_size in docs/parameters.md). It is 0 where the size of the volume is not known.
func linkMost(data, wal *protocol.Room) int64 {
	switch {
	case wal != nil:
		return max(wal.Size/5*2, 64<<20)
	case data != nil:
		return max(data.Size/4, 64<<20)
	}
	return 0
}

// Slots are reported that keep leastKept bytes at least, in whole segments, so that the status seldom changes.
const leastKept, slotUnit = 2 * wal.SegmentSize, wal.SegmentSize

// reportKeptWAL says which slots keep much WAL. Nothing rests on that: where it can't be seen, what was said stays.
func (c *chores) reportKeptWAL(ctx context.Context, session choreSession) {
	seen, err := session.KeptWAL(ctx, leastKept)
	if err != nil {
		return
	}
	kept := &protocol.KeptWAL{Limit: seen.Limit}
	for _, s := range seen.Slots {
		whole := s.Bytes - s.Bytes%slotUnit
		kept.Slots = append(kept.Slots, protocol.Slot{Name: s.Name, Bytes: whole, Active: s.Active})
	}
	c.report(kept)
}

// ofStandby removes the slots of a former primary, which would keep WAL for ever. Those of a link it keeps until it
// streams: until then it may be the primary again.
func (c *chores) ofStandby(ctx context.Context, session choreSession, streams bool) error {
	c.as(false)
	config := c.config()
	if !c.due(config) {
		return c.refused
	}
	c.primary = false
	c.report(nil)
	todo := []func() error{
		func() error { return c.keepSlots(ctx, config, session, nil) },
		func() error { return c.letWALGo(ctx, config, session) },
	}
	if streams {
		todo = append(todo, func() error { return session.EndFollowers(ctx) }, func() error {
			synced, err := session.KeepLinkSlots(ctx)
			if err == nil {
				c.linked.Store(synced)
			}
			return err
		})
	}
	return c.did(config, each(todo...))
}

// as notes the role of the server. What it has refused in another one says nothing of what it is to do now.
func (c *chores) as(primary bool) {
	if c.leads != primary {
		c.leads, c.refused = primary, nil
	}
}

// due says that it is time, or that there is a new archive: until its slot is there, nothing keeps the WAL for it. New
// poolers wait for their role.
func (c *chores) due(config protocol.Config) bool {
	return time.Since(c.done) > choreInterval || c.archives != (config.Archive != nil) || c.pooler != config.Pooler
}

// did notes that they were done by a config, also those that the server has refused: they are done again after a while.
func (c *chores) did(config protocol.Config, err error) error {
	if err == nil || postgres.RefusesBesides(err) {
		c.refused, c.done, c.archives, c.pooler = err, time.Now(), config.Archive != nil, config.Pooler
	}
	return err
}

// keepSlots makes the slots there are to be, and removes others of ours.
func (c *chores) keepSlots(
	ctx context.Context, config protocol.Config, session choreSession, slots []string,
) error {
	return session.EnsureSlots(ctx, WithArchive(config, slots))
}

// letWALGo lets the server remove what is archived. Every instance keeps it until
// then: any of them may be the next to archive.
func (c *chores) letWALGo(ctx context.Context, config protocol.Config, session choreSession) error {
	position := c.archived()
	if config.Archive == nil || position == "" {
		return nil
	}
	lsn, err := wal.ParseLSN(position)
	if err != nil {
		return fmt.Errorf("understand how far the archive is: %w", err)
	}
	return session.AdvanceSlot(ctx, naming.SlotArchive, write.State{Archived: lsn}.Slot().String())
}

// WithArchive adds the slot of the archive to others, where there is one.
func WithArchive(config protocol.Config, slots []string) []string {
	if config.Archive == nil {
		return slots
	}
	return append(slots, naming.SlotArchive)
}
