package sampledb

import (
	"fmt"
	"strings"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// notStarting is what is known to keep the instance with the upgraded data from starting, "" for nothing.
func (s *upgradeTopic) notStarting() string {
	name := s.upgrade.Instance
	ordinal, _ := naming.Ordinal(name)
	pod := s.seen.pods[ordinal]
	if pod == nil {
		return "there is no Pod " + name
	}
	if t := podTrouble(pod); t != nil {
		return t.message
	}
	answer, known := s.seen.answers[name]
	if !known {
		return name + " does not answer"
	}
	return answer.Message
}

// backByHand is how to go back to the moment before an upgrade, for people.
func (s *upgradeTopic) backByHand() string {
	u := s.upgrade
	var ways []string
	if s.backup != nil {
		ways = append(ways, fmt.Sprintf("kubectl toban restore %s --into OTHER --to %s makes a SampleDB of "+
			"PostgreSQL %d as it was then", s.db.Name, u.ClosedAt, u.From))
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
