package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/agent/volume"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
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
		"data":                          {nil, nil, "", machine.DataSeen{Data: ha.DataPresent, SystemIdentifier: "77", Room: true}},
		"data that is known":            {nil, broken, "55", machine.DataSeen{Data: ha.DataPresent, SystemIdentifier: "55", Room: true}},
		"nobody knows":                  {broken, nil, "", machine.DataSeen{Data: ha.DataUnknown, Room: true}},
		"nobody knows of which cluster": {nil, broken, "", machine.DataSeen{Data: ha.DataUnknown, Room: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []machine.Event
			board := status.New(protocol.Status{SystemIdentifier: c.known})
			w := &dataWatch{
				folder: volume.NewDataFolder(present{c.folder}), status: board, log: slog.New(slog.DiscardHandler), life: t.Context(),
				control: func(context.Context) (postgres.Control, error) {
					return postgres.Control{SystemIdentifier: "77"}, c.control
				},
				post: func(e machine.Event) { heard = append(heard, e) },
			}
			w.see()
			if len(heard) != 1 || heard[0] != machine.Event(c.want) || board.Get().SystemIdentifier != c.want.SystemIdentifier {
				t.Errorf("it hears %+v, and the status says %q", heard, board.Get().SystemIdentifier)
			}
		})
	}
}
