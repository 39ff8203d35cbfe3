package volume

import (
	"errors"
	"testing"

	"toban.dev/internal/ha"
)

// folder is a data directory as it is said to be.
type folder struct {
	present, incomplete, forked bool
	broken                      error
	free                        uint64
}

func (f *folder) HasData() (bool, error)     { return f.present, f.broken }
func (f *folder) Incomplete() (bool, error)  { return f.incomplete, f.broken }
func (f *folder) Forked() (bool, error)      { return f.forked, f.broken }
func (f *folder) FreeSpace() (uint64, error) { return f.free, f.broken }

func TestWhatLiesInTheDataDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		folder folder
		want   ha.Data
	}{
		"nothing":                        {folder{}, ha.DataEmpty},
		"data":                           {folder{present: true}, ha.DataPresent},
		"data that has gone another way": {folder{present: true, forked: true}, ha.DataForked},
		"half a rewind":                  {folder{present: true, incomplete: true, forked: true}, ha.DataIncomplete},
		"nobody knows": {
			folder{present: true, broken: errors.New("input/output error")}, ha.DataUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewDataFolder(&c.folder, c.folder.Incomplete).Lies()
			if got != c.want || (err != nil) != (c.folder.broken != nil) {
				t.Errorf("there is %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// A copy that did not fit is tried again when there is clearly more room than there was, and
// then as often as is wanted.
func TestRoomForACopy(t *testing.T) {
	data := &folder{free: 1 << 30}
	f := NewDataFolder(data, data.Incomplete)
	check := func(want bool, when string) {
		t.Helper()
		if got := f.CheckRoom(); got != want {
			t.Errorf("%s there is room: %v", when, got)
		}
	}
	check(true, "before any copy has failed")
	f.LackRoom()
	check(false, "as much as when it failed:")
	data.free += moreRoom - 1
	check(false, "with hardly more")
	data.free++
	data.broken = errors.New("input/output error")
	check(false, "where that is not known")
	data.broken = nil
	check(true, "with enough more")
	data.free = 0
	check(true, "until another has failed")
}
