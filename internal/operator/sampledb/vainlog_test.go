package sampledb

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

func TestTheLogOfWhoCampaignsIsNamed(t *testing.T) {
	s := threeOf(campaigned(0, "NoData"), campaigned(0, "Resting"), campaigned(21, "Resting")).
		was(v1.ConditionAvailable, "False", v1.ReasonNoPrimary, time.Minute)
	if m := s.electionsInVain().message; !strings.Contains(m, "x-2") {
		t.Errorf("x-2 campaigns, and it says: %s", m)
	}
}
