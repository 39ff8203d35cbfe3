package secrets

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

func TestNextStepOfARotationOfTheAuthority(t *testing.T) {
	// At rest all use and trust one authority, and nobody asks for another.
	with := func(modify func(*authorityChange)) authorityChange {
		q := authorityChange{app: true, secret: true}
		modify(&q)
		return q
	}
	asked := func(modify func(*authorityChange)) authorityChange {
		return with(func(q *authorityChange) { q.asked = true; modify(q) })
	}
	trusting := func(modify func(*authorityChange)) authorityChange {
		return with(func(q *authorityChange) { q.oldest, q.issuer, q.epoch = 1, 1, 2; modify(q) })
	}
	reissuing := func(modify func(*authorityChange)) authorityChange {
		return with(func(q *authorityChange) { q.oldest, q.issuer, q.epoch = 1, 2, 2; modify(q) })
	}
	dropped := func(modify func(*authorityChange)) authorityChange {
		return with(func(q *authorityChange) { q.oldest, q.issuer, q.epoch = 2, 2, 2; modify(q) })
	}
	some, nothing := []string{"x-1"}, func(*authorityChange) {}
	for name, c := range map[string]struct {
		change authorityChange
		want   authorityStep
		reason string
	}{
		"nobody asks": {with(nothing), authorityNone, ""},
		"nobody asks, and an agent is of an earlier release": {
			with(func(q *authorityChange) { q.mute = some }), authorityNone, "",
		},
		"asked": {asked(nothing), authorityBegin, ""},
		"asked for what can't be understood": {
			asked(func(q *authorityChange) { q.wrong = "no" }), authorityWait, v1.ReasonAuthorityWaits,
		},
		"asked before the init Job is done": {
			asked(func(q *authorityChange) { q.starting = true }), authorityWait, v1.ReasonAuthorityWaits,
		},
		"asked during a restore in place": {
			asked(func(q *authorityChange) { q.restoring = true }), authorityWait, v1.ReasonAuthorityWaits,
		},
		"asked while an instance is away": {
			asked(func(q *authorityChange) { q.away = some }), authorityWait, v1.ReasonAuthorityWaits,
		},
		"asked of an agent of an earlier release": {
			asked(func(q *authorityChange) { q.mute = some }), authorityWait, v1.ReasonAuthorityWaits,
		},
		"begun, and NAME-app has the former one alone": {
			trusting(func(q *authorityChange) { q.app = false }), authorityWait, v1.ReasonTrustingBoth,
		},
		"begun, and an instance does not trust both": {
			trusting(func(q *authorityChange) { q.behind = some }), authorityWait, v1.ReasonTrustingBoth,
		},
		"begun, and an instance is away": {
			trusting(func(q *authorityChange) { q.settled, q.away = true, some }), authorityWait, v1.ReasonTrustingBoth,
		},
		"begun, and its time is not over": {
			trusting(func(q *authorityChange) { q.settled, q.until = true, "noon" }), authorityWait,
			v1.ReasonTrustingBoth,
		},
		"all trust both": {trusting(func(q *authorityChange) { q.settled = true }), authorityIssue, ""},
		"all trust both, and another is asked for": {
			trusting(func(q *authorityChange) { q.settled, q.asked = true, true }), authorityIssue, "",
		},
		"the former NAME-ca is still there": {
			reissuing(func(q *authorityChange) { q.secret, q.behind = false, some }), authorityWait,
			v1.ReasonWritingAuthority,
		},
		"an instance has no certificate of the new one": {
			reissuing(func(q *authorityChange) { q.behind = some }), authorityWait, v1.ReasonReissuing,
		},
		"an instance is away that may have none": {
			reissuing(func(q *authorityChange) { q.settled, q.away = true, some }), authorityWait, v1.ReasonReissuing,
		},
		"all use the new one, and its time is not over": {
			reissuing(func(q *authorityChange) { q.settled, q.until = true, "noon" }), authorityWait,
			v1.ReasonReissuing,
		},
		"all use the new one": {reissuing(func(q *authorityChange) { q.settled = true }), authorityDrop, ""},
		"dropped, and an instance trusts it still": {
			dropped(func(q *authorityChange) { q.behind = some }), authorityWait, v1.ReasonDroppingFormer,
		},
		"dropped, and another one is asked for already": {
			dropped(func(q *authorityChange) { q.asked, q.behind = true, some }), authorityWait,
			v1.ReasonDroppingFormer,
		},
		"done": {dropped(func(q *authorityChange) { q.settled = true }), authorityNone, ""},
		"done, and an instance goes away": {
			dropped(func(q *authorityChange) { q.settled, q.away = true, some }), authorityNone, "",
		},
		"done, and another one is asked for": {
			dropped(func(q *authorityChange) { q.settled, q.asked = true, true }), authorityBegin, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			step, reason, sentence := c.change.next()
			if step != c.want || reason != c.reason {
				t.Errorf("%s for %q (%s), want %s for %q", step, reason, sentence, c.want, c.reason)
			}
			if said := sentence != ""; said != (c.want == authorityWait) {
				t.Errorf("it says %q", sentence)
			}
		})
	}
}

func TestForHowLongBothAreTrusted(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"24h": 24 * time.Hour, "0s": 0, "0": 0, "1h30m": 90 * time.Minute,
	} {
		if got, wrong := overlapOf(text); got != want || wrong != "" {
			t.Errorf("%s is %s, %s", text, got, wrong)
		}
	}
	for _, text := range []string{"now", "-1h", "24", "10000h", "1d"} {
		if got, wrong := overlapOf(text); got != 0 || !strings.Contains(wrong, "24h") {
			t.Errorf("%s is %s, %s", text, got, wrong)
		}
	}
}
