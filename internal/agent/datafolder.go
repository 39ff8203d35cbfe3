package agent

import (
	"context"
	"sync"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// dataInterval is how often is looked what lies in the data directory.
const dataInterval = 500 * time.Millisecond

// moreRoom is how much more must be free than when a copy did not fit, in bytes, before it is tried again whether it does.
const moreRoom = 256 << 20

// dataFolder is the instance's data directory.
type dataFolder struct {
	server PostgreSQL
	mutex  sync.Mutex
	// needs is how much must be free for a copy to be tried beside the data, in bytes, 0 while none has failed for want of it.
	needs uint64
}

// lackRoom notes that a copy does not fit beside the data.
func (v *dataFolder) lackRoom() {
	free, err := v.server.FreeSpace()
	if err != nil {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.needs = free + moreRoom
}

// hasRoom says that there is room for a copy, as far as is known.
func (v *dataFolder) hasRoom() bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.needs == 0 {
		return true
	}
	free, err := v.server.FreeSpace()
	if err != nil || free < v.needs {
		return false
	}
	v.needs = 0
	return true
}

// lies is what lies there. What can't be read is unknown.
func (v *dataFolder) lies() (ha.Data, error) {
	incomplete, err := v.server.Incomplete()
	if err != nil || incomplete {
		return known(ha.DataIncomplete, err)
	}
	present, err := v.server.HasData()
	if err != nil || !present {
		return known(ha.DataEmpty, err)
	}
	forked, err := v.server.Forked()
	if err != nil || forked {
		return known(ha.DataForked, err)
	}
	return ha.DataPresent, nil
}

func known(data ha.Data, err error) (ha.Data, error) {
	if err != nil {
		return ha.DataUnknown, err
	}
	return data, nil
}

// dataLoop looks now and then what lies in the data directory.
func (a *Agent) dataLoop(ctx context.Context) error {
	for {
		a.seeData()
		if !sleep(ctx, dataInterval) {
			return nil
		}
	}
}

// seeData tells the machine what lies in the data directory.
func (a *Agent) seeData() {
	data, err := a.data.lies()
	identifier := ""
	if err == nil && data == ha.DataPresent {
		identifier, err = a.systemIdentifier()
	}
	if err != nil {
		a.Log.Warn("the data directory can't be read", "error", err.Error())
		data = ha.DataUnknown
	}
	a.post(machine.DataSeen{Data: data, SystemIdentifier: identifier, Room: a.data.hasRoom()})
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
