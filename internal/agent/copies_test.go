package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
)

// copier is a server whose data is replaced, with the term history of where it comes from.
type copier struct {
	steps []string
	data  string
	err   error
	whole bool // a copy is whole before the data is given up for it
	stuck bool // it can't be stopped
}

func (c *copier) step(what string) error {
	c.steps = append(c.steps, what)
	return c.err
}

func (c *copier) Initialise(context.Context, io.Writer) error { return c.step("initialise") }
func (c *copier) MarkForked() error                           { return c.step("mark") }

func (c *copier) Clone(_ context.Context, source postgres.Upstream, mayDiscard func(bool) error, _ io.Writer) error {
	if err := mayDiscard(c.whole); err != nil {
		return err
	}
	return errors.Join(c.step("clone "+source.Host), c.inherit())
}

func (c *copier) Rewind(_ context.Context, source postgres.Upstream, _ io.Writer) error {
	return errors.Join(c.step("rewind "+source.Host), c.inherit())
}

// inherit puts a term history with the data.
func (c *copier) inherit() error {
	text, err := json.Marshal([]ha.TermStart{{Term: 4, Timeline: 2}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.data, "toban_lineage.json"), text, 0o600)
}

func TestHowDataIsMadeAndReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		kind    machine.Kind
		server  copier
		leader  string
		needed  string // why the data may not be given up
		steps   string
		failed  string
		history bool
		data    protocol.Data // what the status says of it, "present" before
		again   bool          // the rewind is tried again, and no copy is made
	}{
		"made":   {kind: machine.Initialise, steps: "initialise", data: "present"},
		"marked": {kind: machine.MarkForked, steps: "mark", data: "present"},
		"copied": {
			kind: machine.Clone, leader: "db-1", steps: "stop,clone h1", history: true, data: protocol.DataEmpty,
		},
		"copied, with the old until then": {
			kind: machine.Clone, leader: "db-1", server: copier{whole: true}, steps: "stop,clone h1",
			history: true, data: "present",
		},
		"not copied: others need it": {
			kind: machine.Clone, leader: "db-1", needed: "db-2 needs it", steps: "stop",
			failed: "db-2 needs it", data: "present",
		},
		"not copied: nobody knows the other": {
			kind: machine.Clone, leader: "db-9", failed: "not among the members", data: "present",
		},
		"not copied: there is no room": {
			kind: machine.Clone, leader: "db-1", server: copier{err: postgres.ErrNoRoom}, steps: "stop,clone h1",
			failed: "room", history: true, data: protocol.DataEmpty,
		},
		"rewound": {kind: machine.Rewind, leader: "db-1", steps: "stop,rewind h1", history: true, data: "present"},
		"not rewound: others need it": {
			kind: machine.Rewind, leader: "db-1", needed: "db-2 needs it", steps: "stop",
			failed: "db-2 needs it", data: "present", again: true,
		},
		"not rewound: nobody knows the other": {
			kind: machine.Rewind, leader: "db-9", failed: "not among the members", data: "present", again: true,
		},
		"not rewound: the server can't be stopped": {
			kind: machine.Rewind, leader: "db-1", server: copier{stuck: true}, steps: "stop", failed: "does not stop",
			data: "present", again: true,
		},
		"not rewound: it fails": {
			kind: machine.Rewind, leader: "db-1", server: copier{err: errors.New("it is broken")},
			steps: "stop,rewind h1", failed: "broken", history: true, data: "present",
		},
		"not rewound: on the same timeline": {
			kind: machine.Rewind, leader: "db-1", server: copier{err: postgres.ErrSameTimeline},
			steps: "stop,rewind h1", failed: "timeline", history: true, data: "present",
		},
		"not rewound: the leader was not reached": {
			kind: machine.Rewind, leader: "db-1", server: copier{err: postgres.ErrUnreached},
			steps: "stop,rewind h1", failed: "reached", history: true, data: "present", again: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, data := c.server, t.TempDir()
			server.data = data
			states, err := volume.OpenStateStore("db-0", t.TempDir(), data)
			if err != nil {
				t.Fatal(err)
			}
			board, seen := status.New(protocol.Status{Data: "present", SystemIdentifier: "77"}), 0
			x := &copies{
				server: &server, mark: server.MarkForked, states: states, status: board, upstream: three(nil).upstream,
				stop: func(context.Context) (wal.LSN, error) { return 0, server.stop() },
				ask: func(_ context.Context, id uint64, e machine.Event) (machine.Effect, error) {
					if e != machine.Event(machine.DiscardAsked{
						ID: 3, Whole: c.kind == machine.Rewind || server.whole,
					}) || id != 3 {
						t.Errorf("the machine is asked %+v", e)
					}
					return machine.ReplyDiscard{ID: id, Needed: c.needed}, nil
				},
				data: &dataWatch{
					folder: volume.NewDataFolder(present{}, present{}.Incomplete),
					status: board, log: slog.New(slog.DiscardHandler),
					life: t.Context(), control: (&timelines{}).Control, post: func(machine.Event) { seen++ },
				},
			}
			d, err := x.do(t.Context(),
				machine.Command{ID: 3, Kind: c.kind, Ballot: ha.Ballot{Term: 4, Leader: c.leader}})
			if !fails(err, c.failed) {
				t.Errorf("the error is %v", err)
			}
			if strings.Join(server.steps, ",") != c.steps || seen != 1 || board.Get().Data != c.data {
				t.Errorf("it did %q, looked %d times at what lies there then, and says that is %q",
					server.steps, seen, board.Get().Data)
			}
			if d.NoRoom != errors.Is(c.server.err, postgres.ErrNoRoom) ||
				d.SameTimeline != errors.Is(c.server.err, postgres.ErrSameTimeline) ||
				d.Unreached != c.again {
				t.Errorf("the machine hears %+v", d)
			}
			if c.history != slices.Equal(d.TermHistory, []ha.TermStart{{Term: 4, Timeline: 2}}) {
				t.Errorf("its term history is %v", d.TermHistory)
			}
		})
	}
}

// fails says whether an error has these words; "" wants none.
func fails(err error, words string) bool {
	return (err == nil) == (words == "") && (err == nil || strings.Contains(err.Error(), words))
}

// stop notes that the server was stopped.
func (c *copier) stop() error {
	c.steps = append(c.steps, "stop")
	if c.stuck {
		return errors.New("it does not stop")
	}
	return nil
}
