package major

import (
	"fmt"
	"strings"

	"toban.dev/internal/change/space"
)

// Room is what is known about the room for an upgrade in place. Sizes are in bytes.
type Room struct {
	// Instance is the one on whose volumes the data is upgraded.
	Instance string
	// Copies says that the files with the rows are copied. Else both versions have the same ones.
	Copies bool
	// Databases is the size of all databases, Catalogs that of their system catalogs, Relations how many there are in
	// them; 0 where it is not known.
	Databases, Catalogs, Relations int64
	// Count is how many databases there are. Each begins as a copy of an empty one, which makes no WAL.
	Count int64
	// Data is the volume of the data, WAL that of the WAL, nil where it is the same.
	Data space.Volume
	WAL  *space.Volume
}

// How much an upgrade writes, beside the rows. From 17 to 18 with 20,000 empty tables (80,000 relations, catalogs of
// 198 MiB) it had at most 625 MiB on the volume besides 496 MiB of WAL; without a table 31 MiB and 16 MiB.
const (
	// emptyServer is what a new server has besides the catalogs that were asked for, emptyRelation what it writes for a
	// relation before that gets its file: a page at most.
	emptyServer, emptyRelation = 16 << 20, 8 << 10
	// catalogTimes is for how many times the catalogs there is room: the new ones, and the dumps of the schema.
	catalogTimes = 2
	// emptyCatalogs are those of an empty database.
	emptyCatalogs = 7 << 20
	// walTimes is the same for WAL, of which there is mostWAL at most (max_wal_size, by default), besides two files.
	walTimes, mostWAL, walFiles = 3, 1 << 30, 32 << 20
)

// NoRoom says that a volume has no room for the upgrade, and what to do; "" where it has, or where that is not known.
// After it there must be so much free that the new primary takes writes (room.Bounds).
func NoRoom(r Room) string {
	data, wal := r.needs(r.Copies)
	linked, _ := r.needs(false)
	if r.WAL == nil {
		data, linked, wal = data+wal, linked+wal, 0
	}
	var all []string
	if lacks(r.Data, data) {
		remedy := "Raise spec.storage.size"
		if r.Copies && !lacks(r.Data, linked) {
			remedy += ", or set spec.upgrade.method to Link, which needs " + space.Amount(total(r.Data, linked))
		}
		all = append(all, r.short("volume", r.Data, data, remedy))
	}
	if r.WAL != nil && lacks(*r.WAL, wal) {
		all = append(all, r.short("WAL volume", *r.WAL, wal, "Raise spec.storage.wal.size"))
	}
	return strings.Join(all, "; ")
}

// needs is how much an upgrade writes. The new version makes the catalogs anew, from a dump of the schema; then the
// relations get the files of the former version. So much of WAL as a primary may have that takes no writes is in what
// must be left (room.Bounds.TakeWrites).
func (r Room) needs(copies bool) (data, wal int64) {
	data = emptyServer + emptyRelation*r.Relations + catalogTimes*r.Catalogs
	if copies {
		data += r.Databases
	}
	wal = walFiles + min(walTimes*max(r.Catalogs-emptyCatalogs*r.Count, 0), mostWAL)
	return data, max(wal-space.SparingWAL, 0)
}

// total is how much must be free before something is written.
func total(v space.Volume, writes int64) int64 { return writes + v.Bounds().Closes }

func lacks(v space.Volume, writes int64) bool {
	return v.Known && v.Size > 0 && v.Free() < total(v, writes)
}

func (r Room) short(which string, v space.Volume, writes int64, remedy string) string {
	what := "the new version's catalogs"
	switch {
	case v.WAL:
		what = "the new version's WAL"
	case r.WAL == nil:
		what += " and WAL"
	}
	if r.Copies && !v.WAL {
		what = "a copy of the databases (" + space.Amount(r.Databases) + "), " + what
	}
	return fmt.Sprintf("the %s of %s has no room: %s are free, and %s are needed for %s, and for writes afterwards. %s",
		which, r.Instance, space.Amount(v.Free()), space.Amount(total(v, writes)), what, remedy)
}
