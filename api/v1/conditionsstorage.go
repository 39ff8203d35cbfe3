package v1

// Reasons of HasRoom. Only WritesRefused keeps Ready from being true. The message says of which volume it is, how full
// that is, and when it is full at the rate at which it fills.
const (
	// ReasonRoomEnough: no volume is nearly full, or will be soon.
	// To do: nothing.
	ReasonRoomEnough = "RoomEnough"

	// ReasonFillsSoon: at the rate at which it fills, a volume is full in less than seven days.
	// To do: raise `spec.storage.size`, set `spec.storage.grow`, or delete what is not needed.
	ReasonFillsSoon = "FillsSoon"

	// ReasonNearlyFull: less than a tenth of a volume is free.
	// To do: raise `spec.storage.size`, set `spec.storage.grow`, or delete what is not needed, now: a primary whose
	// volume is full takes no writes.
	ReasonNearlyFull = "NearlyFull"

	// ReasonWALKept: the primary keeps WAL for somebody who does not read it: the archive, an instance, or an
	// application with a replication slot of its own. It is more than an eighth of the volume, or more than half of
	// `max_slot_wal_keep_size`, which limits it. The message says for whom, how much, and what happens at the limit.
	// To do: what the message says: see why the archive does not take it (the condition Archiving), bring the instance
	// back, let the application read its slot, or drop that.
	ReasonWALKept = "WALKept"

	// ReasonWritesRefused: the primary takes no writes, for its volume has less room left than it needs to go on
	// safely. It serves those who only read. The message says how much must be free for it to take writes again, which
	// it then does by itself. It is a reason of Available and of Ready too.
	// To do: raise `spec.storage.size`, set `spec.storage.grow`, or delete what is not needed, in a session that begins
	// with `SET default_transaction_read_only = off`.
	ReasonWritesRefused = "WritesRefused"

	// ReasonVolumeFull: a volume has no room for another segment of WAL (16 MiB). A primary there takes no writes, and
	// its server may end.
	// To do: raise `spec.storage.size`: volumes grow while servers run, and while they can't.
	ReasonVolumeFull = "VolumeFull"

	// ReasonGrowthLimitReached: a volume gets short, and has grown by itself as far as it may.
	// To do: raise `spec.storage.grow.limit`, or delete what is not needed.
	ReasonGrowthLimitReached = "GrowthLimitReached"

	// ReasonGrowthRefused: volumes are to grow by themselves, and can't; the message says why.
	// To do: set `allowVolumeExpansion: true` in the StorageClass if its storage supports that, raise the quota that
	// the message names, or remove `spec.storage.grow`.
	ReasonGrowthRefused = "GrowthRefused"

	// ReasonGrowthPending: a volume gets short, and the storage has not finished the last growth for ten minutes.
	// To do: see `kubectl describe pvc data-NAME-0`. Some clouds change a volume only once in six hours.
	ReasonGrowthPending = "GrowthPending"

	// ReasonGrowthUseless: a volume gets short, and its file system is larger than the volume claims to be, as with
	// folders of a node's disk. To enlarge the claim would give no room.
	// To do: make room on what the volume is a part of, or use a StorageClass whose volumes have their size.
	ReasonGrowthUseless = "GrowthUseless"
)

// Reasons of StorageReady, besides those of conditions.go, while spec.storage asks for smaller volumes or for another
// StorageClass. The message says which instances are left, in their order.
const (
	// ReasonReplacingVolumes: an instance is copied onto a new volume, as spec.storage asks; the others serve.
	// To do: wait. If it stays, the message says what the instance does; `kubectl describe pod NAME-0` has more.
	ReasonReplacingVolumes = "ReplacingVolumes"

	// ReasonReplacementWaits: the next volume is not replaced yet; the message says why. Nothing is touched meanwhile.
	// To do: what the message says; it goes on by itself. To take the change back, write the former values.
	ReasonReplacementWaits = "ReplacementWaits"

	// ReasonDataSetAside: a volume that would be replaced has former data, which a restore in place or an upgrade has
	// set aside there and which is nowhere else. No volume is touched.
	// To do: copy out what you need of it, and let it be removed as the message says; or write the former values.
	ReasonDataSetAside = "DataSetAside"

	// ReasonDataDoesNotFit: what is on the volumes does not fit on those that spec.storage asks for. No further volume
	// is touched.
	// To do: delete what is not needed, or set `spec.storage.size` to what the message says at least.
	ReasonDataDoesNotFit = "DataDoesNotFit"

	// ReasonNeedsAnotherInstance: the volume of a lone instance can't be replaced: no other one has its data.
	// To do: set `spec.instances` to 2, wait until Ready is true, and set it back to 1.
	ReasonNeedsAnotherInstance = "NeedsAnotherInstance"
)
