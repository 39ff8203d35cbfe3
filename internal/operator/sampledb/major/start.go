package major

import (
	"fmt"
	"strings"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

// notStarting is what is known to keep the instance with the upgraded data from starting, "" for nothing.
func (s *upgradeTopic) notStarting() string {
	name := s.Upgrade.Instance
	ordinal, _ := naming.Ordinal(name)
	pod := s.Seen.Pods[ordinal]
	if pod == nil {
		return "there is no Pod " + name
	}
	if t := world.PodTrouble(pod); t != nil {
		return t.Message
	}
	answer, known := s.Seen.Answers[name]
	if !known {
		return name + " does not answer"
	}
	return answer.Message
}

// backByHand is how to go back to the moment before an upgrade, for people.
func (s *upgradeTopic) backByHand() string {
	u := s.Upgrade
	var ways []string
	if s.Backup != nil {
		ways = append(ways, fmt.Sprintf("kubectl toban restore %s --into OTHER --to %s makes a SampleDB of "+
			"PostgreSQL %d as it was then", s.DB.Name, u.ClosedAt, u.From))
	}
	if s.wayBack() == v1.WayBackFormerData {
		ways = append(ways, fmt.Sprintf("the former data is whole, in before-%s/data on the volume of %s", u.ID,
			u.Instance))
	}
	if len(ways) == 0 {
		return "there is no archive, and the former data shares its files with the new"
	}
	return strings.Join(ways, "; ")
}
