package main

import (
	"fmt"
	"strings"
	"time"

	"toban.dev/test/outside"
)

// shortDrill are the faults of TestDrill.
const shortDrill = "postmaster-killed,pod-force-deleted,server-hung,node-cut,switchover,lossy-and-busy"

// unbounded has no bound: half of the packets are too many for a stream of WAL, and few enough for a heartbeat now and
// then (docs/drills.md has what was measured).
const unbounded = "primary-link-lossy"

// bounds are for how long each fault may keep clients from writing.
func bounds(o options) map[string]outside.Bound {
	all := map[string]outside.Bound{
		// While packets are lost, writes may wait all the time.
		"lossy-and-busy": outside.Lost.During(o.lossy),
	}
	for bound, names := range map[outside.Bound]string{
		outside.Lost: "postmaster-killed agent-killed pod-force-deleted pod-frozen node-cut node-killed " +
			"primary-cut-from-standbys primary-deaf primary-mute disk-full primary-disk-stalls primary-disk-hangs " +
			"service-deleted connections-used out-of-memory processes-used kubelet-away api-away operator-away",
		outside.Hangs:     "server-hung postmaster-hung",
		outside.HandsOver: "switchover pod-deleted",
		outside.MajorityLost: "leader-killed-thrice primary-and-standby-pod primary-and-standby-node servers-killed " +
			"agents-killed two-pods-deleted all-pods-deleted",
		outside.Undisturbed: "node-cut-from-api standby-disk-stalls standby-pgdata-lost standby-volume-lost " +
			"standby-pod-deleted lease-deleted config-deleted statefulset-deleted ca-deleted kubelet-stopped " +
			"runtime-restarted",
	} {
		for _, name := range strings.Fields(names) {
			all[name] = bound
		}
	}
	return all
}

// tooLong says which clients could not write for longer than the fault may keep them from it. While the API is away, a
// Service leads to who led before, so that only clients of several hosts, and of a pooler, are looked at then.
func (r Run) tooLong(f fault) []string {
	if f.bound == (outside.Bound{}) {
		return nil
	}
	ways := map[Path]float64{PathMulti: r.Multi, PathPooler: r.Pooler}
	if f.api != takesAPI {
		ways[PathService], ways[PathLabel] = r.Service, r.Label
	}
	var out []string
	for _, path := range allPaths {
		if err := f.bound.Judge(time.Duration(ways[path] * float64(time.Second))); err != nil {
			out = append(out, fmt.Sprintf("%s: %v", path, err))
		}
	}
	return out
}
