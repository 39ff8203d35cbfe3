package protocol

import "time"

// KeptWAL is for whom a primary keeps WAL. Sizes are in bytes.
type KeptWAL struct {
	// Limit is how much a slot may keep (max_slot_wal_keep_size), negative where nothing limits it.
	Limit int64 `json:"limit"`
	// Slots are those that keep much, the one that keeps the most first.
	Slots []Slot `json:"slots,omitempty"`
}

// Slot is a replication slot of a primary that keeps WAL.
type Slot struct {
	Name string `json:"name"`
	// Bytes is how much WAL it keeps.
	Bytes int64 `json:"bytes"`
	// Active says that somebody reads it now.
	Active bool `json:"active,omitempty"`
}

// Room is how full the volume of an instance is. Sizes are in bytes.
type Room struct {
	// Size is how much its file system can hold, Used how much of that the server can't have any more.
	Size int64 `json:"size"`
	Used int64 `json:"used"`
	// PerDay is by how much it fills a day, 0 where it does not; nil where that is not known. Over is over what time
	// that was measured.
	PerDay *int64        `json:"perDay,omitempty"`
	Over   time.Duration `json:"over,omitempty"`
	// Drill is how much of what is used a FaultDrill has filled. It is in no rate.
	Drill int64 `json:"drill,omitempty"`
	// Lately is by how much it has filled in the last minute.
	Lately int64 `json:"lately,omitempty"`
}
