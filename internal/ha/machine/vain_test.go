package machine

import (
	"testing"
	"time"
)

// What was in vain is told until an instance has led for long, or nobody campaigns any more.
func TestCampaignsInVainAreTold(t *testing.T) {
	t.Parallel()
	r := standby(t)
	told := func(what string, want int) {
		t.Helper()
		if got := r.InVain(); got != want {
			t.Errorf("%s: %d are told", what, got)
		}
	}
	told("there was none", 0)
	for range 3 {
		r.campaign = &campaign{term: 5, poll: &poll{}}
		r.endCampaign()
		r.now += 10 * time.Second
		r.Instance.now = r.now
	}
	told("three ended without a victory", 3)
	r.Instance.now += vainLasts - 10*time.Second
	told("a minute after the last one", 3)
	r.Instance.now += time.Second
	told("nobody has campaigned for more than a minute", 0)
	r.vain.poll(r.Instance.now)
	told("it begins again", 4)
	r.watch.leads = r.Instance.now - steadyAfter
	r.remember(true)
	told("an instance has led for long", 0)
}
