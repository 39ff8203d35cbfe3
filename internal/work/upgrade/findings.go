package upgrade

import (
	"toban.dev/internal/change/major"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// mostFound is how many objects a finding has at most.
const mostFound = 10

// Findings are what was found by a look before a change of versions, for a result.
func Findings(all []major.Finding) (out []protocol.UpgradeFinding) {
	for _, f := range all {
		more := max(0, len(f.Objects)-mostFound)
		out = append(out, protocol.UpgradeFinding{Reason: f.Reason, Message: f.Message,
			Objects: f.Objects[:len(f.Objects)-more], More: more})
	}
	return out
}

// ShortenFindings leaves three objects of each, whose names it cuts.
func ShortenFindings(all []protocol.UpgradeFinding, most int) {
	const objects = 3
	for i := range all {
		f := &all[i]
		if more := len(f.Objects) - objects; more > 0 {
			f.Objects, f.More = f.Objects[:objects], f.More+more
		}
		for j := range f.Objects {
			f.Objects[j] = pod.First(f.Objects[j], most)
		}
	}
}
