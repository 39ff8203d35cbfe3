package agent

import (
	"testing"

	"toban.dev/internal/agent/volume"
	"toban.dev/internal/room"
)

// What is sorted is on the data volume: only where that is short, it gets little room.
func TestAServerGoesByTheVolumeWithLeastRoom(t *testing.T) {
	short := func(bounds room.Bounds) volume.Shortage { return volume.Shortage{Spare: true, Bounds: bounds} }
	data, wal := short(room.BoundsOf(10<<30)), short(room.BoundsOfWAL(1<<30))
	if got := sparing(volume.Shortage{}, volume.Shortage{}); got != nil {
		t.Errorf("with room on both it spares %+v", got)
	}
	if got := sparing(volume.Shortage{}, wal); got == nil || got.TempFiles >= 0 || got.MaxWAL != room.SparingMaxWAL {
		t.Errorf("with a short WAL volume it spares %+v", got)
	}
	for _, other := range []volume.Shortage{{}, wal} {
		if got := sparing(data, other); got == nil || got.TempFiles != data.Bounds.Spare/4 {
			t.Errorf("with a short data volume it spares %+v", got)
		}
	}
}
