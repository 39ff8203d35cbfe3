package agent

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// dataInterval is how often is looked what lies in the data directory.
const dataInterval = 500 * time.Millisecond

// dataWatch sees what lies in the data directory.
type dataWatch struct {
	folder *volume.DataFolder
	// control reads the control file of the data.
	control func(context.Context) (postgres.Control, error)
	status  *status.Board
	post    func(machine.Event)
	log     *slog.Logger
	life    context.Context //nolint:containedctx // it is the agent's
	looks   pause.Lock      // held from a look until it is told
}

// run looks now and then, until ctx ends.
func (w *dataWatch) run(ctx context.Context) error {
	for {
		w.see()
		if !pause.Every(ctx, dataInterval) {
			return nil
		}
	}
}

// see tells the machine what lies in the data directory. One look is told before the next is taken: an old one, told
// after a copy has ended, would have the machine believe that there is nothing to lose.
func (w *dataWatch) see() {
	w.looks.Lock()
	defer w.looks.Unlock()
	data, err := w.folder.Lies()
	identifier := ""
	if err == nil && data == ha.DataPresent {
		identifier, err = w.systemIdentifier()
	}
	if err != nil {
		w.log.Warn("the data directory can't be read", "error", err.Error())
		data = ha.DataUnknown
	}
	w.post(machine.DataSeen{Data: data, SystemIdentifier: identifier, Room: w.folder.CheckRoom()})
}

// systemIdentifier is that of the data.
func (w *dataWatch) systemIdentifier() (string, error) {
	if id := w.status.Get().SystemIdentifier; id != "" {
		return id, nil
	}
	control, err := w.control(w.life)
	if err != nil {
		return "", err
	}
	w.status.Change(func(s *protocol.Status) { s.SystemIdentifier = control.SystemIdentifier })
	return control.SystemIdentifier, nil
}
