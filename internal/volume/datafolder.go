package volume

import (
	"sync"

	"toban.dev/internal/ha"
)

// moreRoom is how much more must be free than when a copy did not fit, in bytes, before it is
// tried again whether it does.
const moreRoom = 256 << 20

// Data is what a data directory, and the markers beside it, say of themselves: a postgres.DataDirectory.
type Data interface {
	HasData() (bool, error)
	Forked() (bool, error)
	FreeSpace() (bytes uint64, err error)
}

// DataFolder is the instance's data directory.
type DataFolder struct {
	data       Data
	incomplete func() (bool, error) // see postgres.Server.Incomplete
	mutex      sync.Mutex
	// needs is how much must be free for a copy to be tried beside the data, in bytes, 0 while none
	// has failed for want of it.
	needs uint64
}

// NewDataFolder is a data directory in which no copy has failed yet.
func NewDataFolder(data Data, incomplete func() (bool, error)) *DataFolder {
	return &DataFolder{data: data, incomplete: incomplete}
}

// LackRoom notes that a copy does not fit beside the data.
func (v *DataFolder) LackRoom() {
	free, err := v.data.FreeSpace()
	if err != nil {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.needs = free + moreRoom
}

// CheckRoom looks whether there is room for a copy, as far as is known. Once there is, that counts
// until another has failed.
func (v *DataFolder) CheckRoom() bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.needs == 0 {
		return true
	}
	free, err := v.data.FreeSpace()
	if err != nil || free < v.needs {
		return false
	}
	v.needs = 0
	return true
}

// Lies is what lies there. What can't be read is unknown.
func (v *DataFolder) Lies() (ha.Data, error) {
	incomplete, err := v.incomplete()
	if err != nil || incomplete {
		return known(ha.DataIncomplete, err)
	}
	present, err := v.data.HasData()
	if err != nil || !present {
		return known(ha.DataEmpty, err)
	}
	forked, err := v.data.Forked()
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
