package agent

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
)

// timelines is a server that does not run, and has WAL of timelines up to one.
type timelines struct {
	highest wal.Timeline
	forgot  []wal.Timeline
}

func (s *timelines) Revoke(uint64) error { return nil }

func (s *timelines) Control(context.Context) (postgres.Control, error) {
	return postgres.Control{SystemIdentifier: "77"}, nil
}

func (s *timelines) Fork(timeline wal.Timeline) (wal.LSN, error) { return wal.LSN(timeline), nil }

func (s *timelines) Branch(timeline, earlier wal.Timeline) (wal.LSN, error) {
	return wal.LSN(earlier)<<32 + wal.LSN(timeline), nil
}

func (s *timelines) ForkFrom(timeline wal.Timeline, from wal.LSN) (wal.LSN, error) {
	return from<<32 + wal.LSN(timeline), nil
}

func (s *timelines) HasTimelines(after wal.Timeline) (bool, error) { return s.highest > after, nil }

func (s *timelines) ForgetTimelines(after wal.Timeline) error {
	s.forgot = append(s.forgot, after)
	return nil
}

// Where no server runs, what needs one is an error, and what only is to end one is done.
func TestCommandsWithoutAServer(t *testing.T) {
	var heard []machine.Event
	board, log := status.New(protocol.Status{Role: protocol.RolePrimary, Ready: true}), slog.New(slog.DiscardHandler)
	post := func(e machine.Event) { heard = append(heard, e) }
	x := &commands{
		slack:  func() time.Duration { return 0 },
		server: &timelines{}, wal: &timelines{}, status: board, post: post, log: log,
		current: &atomic.Pointer[running.Server]{},
		life:    t.Context(), queue: &queue{life: t.Context()}, demands: &demands{},
		hardState: func() ha.HardState { return ha.HardState{} }, data: &dataWatch{
			folder: volume.NewDataFolder(present{}, present{}.Incomplete), status: board, post: post, log: log,
			life:    t.Context(),
			control: (&timelines{}).Control,
		},
	}
	for kind, failed := range map[machine.Kind]bool{
		machine.Follow: true, machine.Cut: true, machine.Promote: true, machine.Open: true,
		machine.Checkpoint: true, machine.Stop: false,
	} {
		if d := x.do(t.Context(), machine.Command{Kind: kind}); (d.Err != "") != failed ||
			failed && d.Err != running.ErrNoServer.Error() {
			t.Errorf("%s: %q", kind, d.Err)
		}
	}
	x.fence(machine.Fence{ID: 9})
	if len(heard) != 3 || !reflect.DeepEqual(heard[0], machine.Killed{ID: 9}) ||
		!reflect.DeepEqual(heard[2], machine.Done{ID: 9}) {
		t.Errorf("after the fence, the machine hears %+v", heard)
	}
	if now := board.Get(); now.Role != protocol.RoleNone || now.Ready {
		t.Errorf("it says that it is %+v", now)
	}
}

// Who is frozen between the command and its being carried out does not let clients in any more.
func TestAPrimaryIsNotOpenedTooLate(t *testing.T) {
	server := &running.Server{Standing: &running.Standing{}}
	x := &commands{
		current: &atomic.Pointer[running.Server]{}, at: func(time.Time) time.Duration { return 5 * time.Second },
	}
	x.current.Store(server)
	d := x.do(t.Context(), machine.Command{Kind: machine.Open, Until: 4 * time.Second})
	if !strings.Contains(d.Err, "ended 1s ago") || server.Standing.IsOpen() {
		t.Errorf("%q, open %t", d.Err, server.Standing.IsOpen())
	}
}

func TestWhereTheWALOfATermBegins(t *testing.T) {
	for name, c := range map[string]struct {
		history []ha.TermStart
		want    wal.LSN
	}{
		"of the first term":            {[]ha.TermStart{{Term: 1}}, 0x3},
		"after a term with a timeline": {[]ha.TermStart{{Term: 1, Timeline: 2}, {Term: 4, LSN: 7}}, 0x2_0000_0003},
		"after one whose promotion was cut short": {
			[]ha.TermStart{{Term: 1, Timeline: 2}, {Term: 3}, {Term: 4, LSN: 7}}, 0x7_0000_0003,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := (&commands{wal: &timelines{}}).beginning(3, c.history); err != nil || got != c.want {
				t.Errorf("it begins at %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// What is on the volume of timelines that this instance has no WAL of is of abandoned ones.
func TestWhoInheritsForgetsAbandonedTimelines(t *testing.T) {
	for highest, forgot := range map[wal.Timeline][]wal.Timeline{3: nil, 4: {3}} {
		server := &timelines{highest: highest}
		x := &commands{
			slack: func() time.Duration { return 0 },
			wal:   server, current: &atomic.Pointer[running.Server]{}, life: t.Context(),
			hardState: func() ha.HardState {
				return ha.HardState{TermHistory: []ha.TermStart{{Timeline: 1}, {Timeline: 3}, {Timeline: 0}}}
			},
		}
		if err := x.inherit(); err != nil || !slices.Equal(server.forgot, forgot) {
			t.Errorf("of %d timelines it forgets those after %v, %v", highest, server.forgot, err)
		}
	}
}

// unending is a server's process that does not end, whatever is done.
type unending struct{ running.Process }

func (unending) Stop(context.Context, postgres.StopMode) {}
func (unending) Done() <-chan struct{}                   { return nil }

// A server that does not end though it is killed may still read what would be forgotten.
func TestTimelinesAreNotForgottenUnderAServerThatDoesNotEnd(t *testing.T) {
	server := &timelines{highest: 4}
	x := &commands{
		wal: server, current: &atomic.Pointer[running.Server]{}, life: t.Context(),
		hardState: func() ha.HardState { return ha.HardState{} },
	}
	x.current.Store(&running.Server{Process: unending{}})
	if err := x.inherit(); !errors.Is(err, running.ErrNoEnd) || server.forgot != nil {
		t.Errorf("%v, and it has forgotten those after %v", err, server.forgot)
	}
}

func TestTheMachineHearsHowACommandEnded(t *testing.T) {
	var heard []machine.Event
	var words strings.Builder
	x := &commands{
		slack:   func() time.Duration { return 0 },
		current: &atomic.Pointer[running.Server]{}, log: slog.New(slog.NewTextHandler(&words, nil)),
		post: func(e machine.Event) { heard = append(heard, e) },
	}
	for _, d := range []machine.Done{{ID: 3}, {ID: 3, Err: "no room"}} {
		words.Reset()
		x.ended(machine.Command{ID: 3, Kind: machine.Follow}, d)
		if last := heard[len(heard)-1]; !reflect.DeepEqual(last, d) ||
			strings.Contains(words.String(), "no room") != (d.Err != "") {
			t.Errorf("it hears %+v; the log says %q", last, words.String())
		}
	}
}
