package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// choreLog is a session that notes what is done by it.
type choreLog struct {
	done []string
	// broken is what fails, refused what the server refuses.
	broken, refused string
	kept            postgres.KeptWAL
	synced          bool
}

// For whom much WAL is kept is said, in whole segments. Where that can't be seen, what was said stays, and the primary
// goes on; a standby says nothing of it.
func TestAPrimarySaysForWhomItKeepsWAL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := chored()
		said := &protocol.KeptWAL{}
		c.report = func(k *protocol.KeptWAL) { said = k }
		session := &choreLog{kept: postgres.KeptWAL{
			Limit: 1 << 30, Slots: []postgres.Slot{{Name: "mine", Bytes: 100<<20 + 5, Active: true}},
		}}
		says := func(when string, want *protocol.KeptWAL) {
			t.Helper()
			time.Sleep(choreInterval + time.Second)
			if oldest, err := c.ofPrimary(t.Context(), session); err != nil || oldest == "" {
				t.Errorf("%s: the chores give %q, %v", when, oldest, err)
			}
			if !reflect.DeepEqual(said, want) {
				t.Errorf("%s: it says %v, want %v", when, said, want)
			}
		}
		mine := &protocol.KeptWAL{
			Limit: 1 << 30, Slots: []protocol.Slot{{Name: "mine", Bytes: 96 << 20, Active: true}},
		}
		says("with a slot", mine)
		session.broken = "kept"
		says("when it can't be seen", mine)
		session.broken, session.kept = "", postgres.KeptWAL{Limit: -1}
		says("without", &protocol.KeptWAL{Limit: -1})
		time.Sleep(choreInterval + time.Second)
		if err := c.ofStandby(t.Context(), session, true); err != nil || said != nil {
			t.Errorf("a standby says %v, %v", said, err)
		}
	})
}

func (l *choreLog) note(what string) error {
	l.done = append(l.done, what)
	if l.broken != "" && strings.HasPrefix(what, l.broken) {
		return errors.New("broken")
	}
	if l.refused != "" && strings.HasPrefix(what, l.refused) {
		return &pgconn.PgError{Code: "53400"}
	}
	return nil
}

func (l *choreLog) EnsureReplication(context.Context) error { return l.note("role") }
func (l *choreLog) EnsurePooler(_ context.Context, wanted bool) error {
	if wanted {
		return l.note("pooler")
	}
	return nil
}

func (l *choreLog) KeepMaintenance(context.Context) error { return l.note("maintenance") }
func (l *choreLog) EnsureSlots(_ context.Context, want []string) error {
	return l.note("slots " + strings.Join(want, " "))
}

func (l *choreLog) EndFollowers(context.Context) error { return l.note("followers") }

func (l *choreLog) KeepLinkSlots(context.Context) (bool, error) { return l.synced, l.note("link") }

func (l *choreLog) GiveUpLink(_ context.Context, most int64) ([]string, error) {
	return nil, l.note(fmt.Sprint("bound ", most))
}

func (l *choreLog) AdvanceSlot(_ context.Context, slot, lsn string) error {
	return l.note("advance " + slot + " " + lsn)
}

func (l *choreLog) KeptWAL(_ context.Context, least int64) (postgres.KeptWAL, error) {
	if least < wal.SegmentSize {
		return postgres.KeptWAL{}, errors.New("what every slot keeps was asked for")
	}
	return l.kept, l.note("kept")
}

func (l *choreLog) OldestWAL(context.Context) (wal.LSN, error) {
	return 0x3000000, l.note("oldest")
}

// chored are chores of an instance with one other, and whether there is an archive.
func chored() (*chores, *bool) {
	archive := false
	return &chores{
		config: func() protocol.Config {
			if archive {
				return protocol.Config{Archive: &protocol.Archive{}}
			}
			return protocol.Config{}
		},
		slots: func() []string { return []string{"db_1"} }, archived: func() string { return "0/5000010" },
		report: func(*protocol.KeptWAL) {}, linked: &atomic.Bool{},
		linkMost: func() int64 { return 0 }, log: slog.New(slog.DiscardHandler),
	}, &archive
}

func TestTheChoresOfAPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, archive := chored()
		session := &choreLog{}
		do := func(when, oldest string, want ...string) {
			t.Helper()
			session.done = nil
			got, err := c.ofPrimary(t.Context(), session)
			if !slices.Equal(session.done, want) || got != oldest || (err != nil) != (session.broken != "") {
				t.Errorf("%s: did %q and found %q, %v; want %q and %q", when, session.done, got, err, want, oldest)
			}
		}
		session.broken = "role"
		do("the role can't be made", "", "role")
		session.broken = ""
		all := []string{"role", "maintenance", "slots db_1", "oldest", "kept"}
		do("at first", "0/3000000", all...)
		do("soon after", "")
		time.Sleep(choreInterval + time.Millisecond)
		do("later", "0/3000000", all...)
		*archive = true
		do("with a new archive", "0/3000000", "role", "maintenance", "slots db_1 "+naming.SlotArchive,
			"advance "+naming.SlotArchive+" 0/5000000", "oldest", "kept")
		do("soon after that", "")
	})
}

// The chores of a standby remove the slots of a former primary. One that is promoted makes those of its standbys as
// soon as it is looked at, though no other chore is due, and once.
func TestAPrimaryThatWasAStandbyMakesItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := chored()
		session := &choreLog{}
		time.Sleep(choreInterval + time.Second)
		if err := c.ofStandby(t.Context(), session, true); err != nil {
			t.Fatal(err)
		}
		before := len(session.done)
		for range 2 {
			if _, err := c.ofPrimary(t.Context(), session); err != nil {
				t.Fatal(err)
			}
		}
		if more := session.done[before:]; len(more) != 1 || !strings.HasPrefix(more[0], "slots") {
			t.Errorf("just promoted, it does %q", more)
		}
	})
}

// A standby has no slots but the archive's: those of a former primary would keep WAL for ever.
func TestTheChoresOfAStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, archive := chored()
		for range 2 {
			session := &choreLog{}
			if err := c.ofStandby(t.Context(), session, false); err != nil {
				t.Fatal(err)
			}
			want := []string{"slots "}
			if *archive {
				want = []string{"slots " + naming.SlotArchive, "advance " + naming.SlotArchive + " 0/5000000"}
			}
			if !slices.Equal(session.done, want) {
				t.Errorf("it did %q, want %q", session.done, want)
			}
			session.done = nil
			if err := c.ofStandby(t.Context(), session, false); err != nil || len(session.done) > 0 {
				t.Errorf("soon after it did %q, %v", session.done, err)
			}
			*archive = true
		}
	})
}

// A standby lets go of the slots of a link that it had as a primary once it streams from another one: until then it may
// be the primary again, and its link is to go on. It notes whether slots come along.
func TestAStandbyKeepsTheSlotsOfALinkUntilItStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := chored()
		for _, when := range []struct{ streams, synced bool }{
			{false, true}, {true, true}, {false, false}, {true, false},
		} {
			session, before := &choreLog{synced: when.synced}, c.linked.Load()
			if err := c.ofStandby(t.Context(), session, when.streams); err != nil {
				t.Fatal(err)
			}
			want := before
			if when.streams {
				want = when.synced
			}
			if slices.Contains(session.done, "link") != when.streams || c.linked.Load() != want {
				t.Errorf("%+v: it did %q, and slots come along: %t", when, session.done, c.linked.Load())
			}
			time.Sleep(choreInterval + time.Second)
		}
	})
}

// What a link may keep is a part of the volume that has the WAL. Where that is not known, or what keeps too much can't
// be given up, the primary goes on.
func TestWhatALinkKeepsIsBounded(t *testing.T) {
	data, wal := &protocol.Room{Size: 40 << 30}, &protocol.Room{Size: 10 << 30}
	for name, c := range map[string]struct {
		data, wal *protocol.Room
		want      int64
	}{
		"nothing is known": {nil, nil, 0}, "one volume": {data, nil, 10 << 30},
		"WAL of its own": {data, wal, 10 << 30 / 5 * 2},
		"a small one":    {&protocol.Room{Size: 100 << 20}, nil, 64 << 20},
	} {
		if got := linkMost(c.data, c.wal); got>>20 != c.want>>20 {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
	c, _ := chored()
	session := &choreLog{broken: "bound"}
	c.linkMost = func() int64 { return 7 }
	oldest, err := c.ofPrimary(t.Context(), session)
	if err != nil || oldest == "" || !slices.Contains(session.done, "bound 7") {
		t.Errorf("it did %q, %q, %v", session.done, oldest, err)
	}
	c, _ = chored()
	session = &choreLog{}
	if _, err := c.ofPrimary(t.Context(), session); err != nil || slices.Contains(session.done, "bound 0") {
		t.Errorf("where the size is not known it did %q, %v", session.done, err)
	}
}

// What the server refuses keeps nothing else from being done: what is archived is let go of though a slot can't be
// made, or the volume would get full. All of it is done again after a while, and not at each look.
func TestEachChoreIsDoneThoughAnotherIsRefused(t *testing.T) {
	archive := "slots db_1 " + naming.SlotArchive
	advance := "advance " + naming.SlotArchive + " 0/5000000"
	primary := []string{"role", "maintenance", "pooler", archive, advance, "oldest", "bound 7", "kept"}
	standby := []string{"slots " + naming.SlotArchive, advance, "followers", "link"}
	for _, refused := range append(slices.Concat(primary, standby), "") {
		synctest.Test(t, func(t *testing.T) {
			c, archives := chored()
			*archives, c.linkMost = true, func() int64 { return 7 }
			config := c.config
			c.config = func() protocol.Config {
				out := config()
				out.Pooler = true
				return out
			}
			told := false // so long as nothing is due, what was refused is so
			do := func(when string, primary bool, want []string) {
				t.Helper()
				session, err := &choreLog{refused: refused}, error(nil)
				if primary {
					_, err = c.ofPrimary(t.Context(), session)
				} else {
					err = c.ofStandby(t.Context(), session, true)
				}
				told = want == nil && told || slices.ContainsFunc(want, func(what string) bool {
					return what == refused && what != "kept" && !strings.HasPrefix(what, "bound")
				})
				if !slices.Equal(session.done, want) || (err != nil) != told {
					t.Errorf("%q is refused, %s: it did %q, want %q: %v", refused, when, session.done, want, err)
				}
			}
			do("at first", true, primary)
			do("soon after", true, nil)
			time.Sleep(choreInterval + time.Second)
			do("later", true, primary)
			time.Sleep(choreInterval + time.Second)
			do("as a standby", false, standby)
			do("soon after that", false, nil)
		})
	}
}

// A primary that was just promoted makes its slots at once, whatever it has refused as a standby. Where they are
// refused, the other chores are done all the same, and the slots are not asked for at each look.
func TestSlotsThatAreRefusedPutOffNoOtherChore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := chored()
		if err := c.ofStandby(t.Context(), &choreLog{refused: "link"}, true); err == nil {
			t.Fatal("nothing is refused")
		}
		session := &choreLog{refused: "slots db_1"}
		for look := range 30 {
			time.Sleep(lookInterval)
			_, _ = c.ofPrimary(t.Context(), session)
			if look == 0 && !slices.Contains(session.done, "slots db_1") {
				t.Errorf("at once it did %q", session.done)
			}
		}
		tried := strings.Count(strings.Join(session.done, ","), "slots db_1")
		if !slices.Contains(session.done, "role") || tried > 3 {
			t.Errorf("it did %q", session.done)
		}
	})
}

// What is no refusal ends what is done, and is what is told: it is no sign of life beside a refusal.
func TestOneThatDoesNotAnswerIsNoRefusal(t *testing.T) {
	refusal := error(&pgconn.PgError{Code: "53400"})
	did := 0
	do := func(err error) func() error { return func() error { did++; return err } }
	err := each(do(nil), do(refusal), do(context.DeadlineExceeded), do(nil))
	if !errors.Is(err, context.DeadlineExceeded) || postgres.RefusesBesides(err) || did != 3 {
		t.Errorf("%d were done: %v", did, err)
	}
	if err := each(do(refusal), do(nil), do(refusal)); !postgres.RefusesBesides(err) {
		t.Errorf("two refusals are %v", err)
	}
	for _, both := range []error{errors.Join(refusal, context.DeadlineExceeded), nil} {
		if postgres.RefusesBesides(both) {
			t.Errorf("%v passes for a refusal", both)
		}
	}
}
