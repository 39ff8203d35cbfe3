package sampledb

import (
	"testing"

	v1 "toban.dev/api/v1"
)

func TestNextStepOfARotationOfThePassword(t *testing.T) {
	// At rest the Secret and the server have the same password, and the primary's agent can be asked.
	with := func(modify func(*rotation)) rotation {
		q := rotation{primary: "x-0", able: true, written: true, given: true}
		modify(&q)
		return q
	}
	asked := func(modify func(*rotation)) rotation {
		return with(func(q *rotation) { q.asked = true; modify(q) })
	}
	for name, c := range map[string]struct {
		rotation rotation
		want     rotationStep
		reason   string
	}{
		"nobody asks":                   {with(func(*rotation) {}), rotationNone, ""},
		"nobody asks, and nobody leads": {with(func(q *rotation) { q.primary = "" }), rotationNone, ""},
		"asked":                         {asked(func(*rotation) {}), rotationBegin, ""},
		"asked where users have the passwords": {
			asked(func(q *rotation) { q.foreign = true }), rotationWait, v1.ReasonRotationWaits,
		},
		"asked before the init Job is done": {
			asked(func(q *rotation) { q.starting = true }), rotationWait, v1.ReasonRotationWaits,
		},
		"asked during a restore in place": {
			asked(func(q *rotation) { q.restoring = true }), rotationWait, v1.ReasonRotationWaits,
		},
		"asked while there are two sides": {
			asked(func(q *rotation) { q.sides = true }), rotationWait, v1.ReasonRotationWaits,
		},
		"the Secret is there, and two sides are": {
			with(func(q *rotation) { q.given, q.sides = false, true }), rotationWait, v1.ReasonSettingPassword,
		},
		"nobody asks while there are two sides": {with(func(q *rotation) { q.sides = true }), rotationNone, ""},
		"asked, and nobody takes writes": {
			asked(func(q *rotation) { q.primary = "" }), rotationWait, v1.ReasonRotationWaits,
		},
		"asked of an agent that can't": {
			asked(func(q *rotation) { q.able = false }), rotationWait, v1.ReasonRotationWaits,
		},
		"asked again while the Secret is there": {
			asked(func(q *rotation) { q.given = false }), rotationGive, "",
		},
		"the former Secret is still there": {
			with(func(q *rotation) { q.written, q.given = false, false }), rotationWait, v1.ReasonWritingSecret,
		},
		"the Secret is there, and the server has another": {
			with(func(q *rotation) { q.given = false }), rotationGive, "",
		},
		"the Secret is there, and nobody takes writes": {
			with(func(q *rotation) { q.given, q.primary = false, "" }), rotationWait, v1.ReasonSettingPassword,
		},
		"the Secret is there, and an agent leads that can't": {
			with(func(q *rotation) { q.given, q.able = false, false }), rotationWait, v1.ReasonSettingPassword,
		},
		"the Secret is there, and an earlier state is being restored": {
			with(func(q *rotation) { q.given, q.restoring = false, true }), rotationWait, v1.ReasonSettingPassword,
		},
	} {
		t.Run(name, func(t *testing.T) {
			step, reason, sentence := nextOfRotation(c.rotation)
			if step != c.want || reason != c.reason {
				t.Errorf("%s for %q (%s), want %s for %q", step, reason, sentence, c.want, c.reason)
			}
		})
	}
}
