package agent

import (
	"context"
	"time"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/change/space"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// volumes are those of the instance, by what was last seen of them. The server goes by the one that is worse. What
// follows is done one after the other, so that what was seen last counts; the machine may take its time.
type volumes struct {
	writes, rooms pause.Lock
	data, wal     seenVolume
}

// seenVolume is what was seen of one: how long a write has not come back, and how short of room it is.
type seenVolume struct {
	unwritten time.Duration
	shortage  volume.Shortage
}

// unwritten is for how long a write to one of them has not come back.
func (v *volumes) unwritten() time.Duration { return max(v.data.unwritten, v.wal.unwritten) }

// endsReads says that those who read are ended, too: one of them has hardly any room left.
func endsReads(data, wal volume.Shortage) bool { return data.EndReads || wal.EndReads }

// watchVolumes are the actors that watch the volume, and that of the WAL where it has one of its own.
func (a *Agent) watchVolumes() (actors []func(context.Context) error) {
	v, log := &volumes{}, a.options.Log
	add := func(path string, seen *seenVolume, tell func(protocol.Room)) *volume.RoomWatch {
		gauge := volume.NewGauge(path, tell, log)
		probe := volume.NewProbe(path, func(unwritten time.Duration) {
			v.writes.Lock()
			defer v.writes.Unlock()
			seen.unwritten = unwritten
			a.flags.Slow.Store(v.unwritten() > 0)
			a.post(machine.VolumeSeen{Unwritten: v.unwritten()})
		}, log)
		watch := volume.NewRoomWatch(path, a.options.Allocate, func(s volume.Shortage) {
			v.rooms.Lock()
			defer v.rooms.Unlock()
			seen.shortage = s
			a.seeShortage(v.data.shortage, v.wal.shortage)
			gauge.LookNow() // who is told that it is short asks how full it is
			a.flags.Short.Store(v.data.shortage.Short || v.wal.shortage.Short)
		}, log)
		actors = append(actors, gauge.Run, probe.Run, watch.Run)
		return watch
	}
	add(a.options.Volume, &v.data, func(room protocol.Room) {
		a.status.Change(func(s *protocol.Status) { s.Room = &room })
	})
	if path := a.options.WALVolume; path != "" {
		add(path, &v.wal, func(room protocol.Room) {
			a.status.Change(func(s *protocol.Status) { s.WALRoom = &room })
		}).OfWAL(a.options.Volume)
	}
	return actors
}

// seeShortage has a primary take no writes before a volume is full.
func (a *Agent) seeShortage(data, wal volume.Shortage) {
	a.flags.Sparing.Store(sparing(data, wal))
	a.flags.EndReads.Store(endsReads(data, wal))
	a.status.Change(func(s *protocol.Status) { s.SparesWAL = wal.Spare })
	a.observeServer()
}

// sparing is how a server goes on that has little room on its volumes, nil where it has enough.
func sparing(data, wal volume.Shortage) *postgres.Sparing {
	switch {
	case data.Spare:
		return &postgres.Sparing{MaxWAL: space.SparingMaxWAL, TempFiles: data.Bounds.Spare / 4}
	case wal.Spare: // what is sorted is on the other one
		return &postgres.Sparing{MaxWAL: space.SparingMaxWAL, TempFiles: -1}
	}
	return nil
}

// marker marks the instance while a volume of it gets full.
func (a *Agent) marker() *publish.Marker {
	return &publish.Marker{Cluster: a.options.Cluster, Log: a.options.Log, Room: func() string {
		switch {
		case a.status.Get().ReadOnly:
			return naming.RoomReadOnly
		case a.flags.Short.Load():
			return naming.RoomShort
		}
		return ""
	}}
}
