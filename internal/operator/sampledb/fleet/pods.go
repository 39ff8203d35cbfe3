package fleet

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Trouble is what keeps the Pods of wanted instances from running, of the first
// that has any; nil when nothing is known to.
func (s *fleetTopic) Trouble() *world.Verdict {
	for ordinal := range s.Instances() {
		pod := s.Seen.Pods[ordinal]
		if pod == nil {
			if t := s.podsRefused(); t != nil {
				return t
			}
			continue
		}
		if s.InstanceReady(pod.Name) {
			continue
		}
		if t := world.PodTrouble(pod); t != nil {
			return t
		}
	}
	return nil
}
