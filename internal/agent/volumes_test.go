package agent

import (
	"testing"
	"time"

	"toban.dev/internal/change/space"
	"toban.dev/internal/volume"
)

// What is sorted is on the data volume: only where that is short, it gets little room.
func TestAServerGoesByTheVolumeWithLeastRoom(t *testing.T) {
	short := func(bounds space.Bounds) volume.Shortage { return volume.Shortage{Spare: true, Bounds: bounds} }
	data, wal := short(space.BoundsOf(10<<30)), short(space.BoundsOfWAL(1<<30))
	if got := sparing(volume.Shortage{}, volume.Shortage{}); got != nil {
		t.Errorf("with room on both it spares %+v", got)
	}
	if got := sparing(volume.Shortage{}, wal); got == nil || got.TempFiles >= 0 || got.MaxWAL != space.SparingMaxWAL {
		t.Errorf("with a short WAL volume it spares %+v", got)
	}
	for _, other := range []volume.Shortage{{}, wal} {
		if got := sparing(data, other); got == nil || got.TempFiles != data.Bounds.Spare/4 {
			t.Errorf("with a short data volume it spares %+v", got)
		}
	}
}

// A write that hangs, or a volume without room, counts on whichever of the two it is.
func TestAServerGoesByTheWorseOfItsVolumes(t *testing.T) {
	v := volumes{data: seenVolume{unwritten: time.Second}}
	if got := v.unwritten(); got != time.Second {
		t.Errorf("a write to the data volume hangs, and it goes by %s", got)
	}
	v.wal.unwritten = 2 * time.Second
	if got := v.unwritten(); got != 2*time.Second {
		t.Errorf("a write to the WAL volume hangs for longer, and it goes by %s", got)
	}
	none, ends := volume.Shortage{Spare: true}, volume.Shortage{Spare: true, EndReads: true}
	for _, c := range []struct {
		data, wal volume.Shortage
		want      bool
	}{{none, none, false}, {ends, none, true}, {none, ends, true}} {
		if got := endsReads(c.data, c.wal); got != c.want {
			t.Errorf("with %+v and %+v reads end: %v", c.data, c.wal, got)
		}
	}
}
