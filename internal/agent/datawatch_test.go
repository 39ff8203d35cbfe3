package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// present is a data directory with data, if it can be read.
type present struct{ err error }

func (p present) HasData() (bool, error)     { return true, p.err }
func (p present) Incomplete() (bool, error)  { return false, p.err }
func (p present) Forked() (bool, error)      { return false, p.err }
func (p present) FreeSpace() (uint64, error) { return 1 << 30, p.err }

func TestTheMachineHearsWhatLiesInTheDataDirectory(t *testing.T) {
	broken := errors.New("input/output error")
	for name, c := range map[string]struct {
		folder, control error
		known           string
		want            machine.DataSeen
	}{
		"data": {nil, nil, "", machine.DataSeen{Data: ha.DataPresent, SystemIdentifier: "77", Room: true}},
		"data that is known": {
			nil, broken, "55", machine.DataSeen{Data: ha.DataPresent, SystemIdentifier: "55", Room: true},
		},
		"nobody knows":                  {broken, nil, "", machine.DataSeen{Data: ha.DataUnknown, Room: true}},
		"nobody knows of which cluster": {nil, broken, "", machine.DataSeen{Data: ha.DataUnknown, Room: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []machine.Event
			board := status.New(protocol.Status{SystemIdentifier: c.known})
			w := &dataWatch{
				folder: volume.NewDataFolder(present{c.folder}, present{c.folder}.Incomplete),
				status: board, log: slog.New(slog.DiscardHandler),
				life: t.Context(), control: func(context.Context) (postgres.Control, error) {
					return postgres.Control{SystemIdentifier: "77"}, c.control
				},
				post: func(e machine.Event) { heard = append(heard, e) },
			}
			w.see()
			if len(heard) != 1 || heard[0] != machine.Event(c.want) ||
				board.Get().SystemIdentifier != c.want.SystemIdentifier {
				t.Errorf("it hears %+v, and the status says %q", heard, board.Get().SystemIdentifier)
			}
		})
	}
}

// filling is a data directory that is empty at the first look, which takes until it is told to end.
type filling struct {
	present
	looks *int
	first chan struct{}
}

func (f filling) HasData() (bool, error) {
	*f.looks++
	if *f.looks > 1 {
		return true, nil
	}
	<-f.first
	return false, nil
}

// A look that takes long is not told after a later one.
func TestLooksAreToldInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []machine.Event
		first := make(chan struct{})
		w := &dataWatch{
			folder: volume.NewDataFolder(filling{looks: new(int), first: first}, filling{}.Incomplete),
			log:    slog.New(slog.DiscardHandler),
			life:   t.Context(), status: status.New(protocol.Status{SystemIdentifier: "77"}),
			post: func(e machine.Event) { heard = append(heard, e) },
		}
		go w.see()
		synctest.Wait()
		go w.see()
		synctest.Wait()
		close(first)
		synctest.Wait()
		last, ok := heard[len(heard)-1].(machine.DataSeen)
		if len(heard) != 2 || !ok || last.Data != ha.DataPresent {
			t.Errorf("it hears %+v", heard)
		}
	})
}
