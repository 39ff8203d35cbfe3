package agent

import (
	"context"
	"time"

	"toban.dev/internal/agent/pause"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// dataInterval is how often is looked what lies in the data directory.
const dataInterval = 500 * time.Millisecond

// dataLoop looks now and then what lies in the data directory.
func (a *Agent) dataLoop(ctx context.Context) error {
	for {
		a.seeData()
		if !pause.For(ctx, dataInterval) {
			return nil
		}
	}
}

// seeData tells the machine what lies in the data directory.
func (a *Agent) seeData() {
	data, err := a.data.Lies()
	identifier := ""
	if err == nil && data == ha.DataPresent {
		identifier, err = a.systemIdentifier()
	}
	if err != nil {
		a.Log.Warn("the data directory can't be read", "error", err.Error())
		data = ha.DataUnknown
	}
	a.post(machine.DataSeen{Data: data, SystemIdentifier: identifier, Room: a.data.CheckRoom()})
}

// systemIdentifier is that of the data.
func (a *Agent) systemIdentifier() (string, error) {
	if id := a.Status().SystemIdentifier; id != "" {
		return id, nil
	}
	control, err := a.server.Control(a.life)
	if err != nil {
		return "", err
	}
	a.report(func(s *protocol.Status) { s.SystemIdentifier = control.SystemIdentifier })
	return control.SystemIdentifier, nil
}
