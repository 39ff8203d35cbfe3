package secrets

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

func TestNextStepOfARotationOfThePassword(t *testing.T) {
	// At rest the Secret and the server have the same password, and the primary's agent can be asked.
	with := func(modify func(*world.Rotation)) world.Rotation {
		q := world.Rotation{Primary: "x-0", Able: true, Written: true, Given: true}
		modify(&q)
		return q
	}
	asked := func(modify func(*world.Rotation)) world.Rotation {
		return with(func(q *world.Rotation) { q.Asked = true; modify(q) })
	}
	for name, c := range map[string]struct {
		rotation world.Rotation
		want     world.RotationStep
		reason   string
	}{
		"nobody asks":                   {with(func(*world.Rotation) {}), world.RotationNone, ""},
		"nobody asks, and nobody leads": {with(func(q *world.Rotation) { q.Primary = "" }), world.RotationNone, ""},
		"asked":                         {asked(func(*world.Rotation) {}), world.RotationBegin, ""},
		"asked where users have the passwords": {
			asked(func(q *world.Rotation) { q.Foreign = true }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"asked before the init Job is done": {
			asked(func(q *world.Rotation) { q.Starting = true }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"asked during a restore in place": {
			asked(func(q *world.Rotation) { q.Restoring = true }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"asked while there are two sides": {
			asked(func(q *world.Rotation) { q.Sides = true }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"the Secret is there, and two sides are": {
			with(func(q *world.Rotation) { q.Given, q.Sides = false, true }), world.RotationWait,
			v1.ReasonSettingPassword,
		},
		"nobody asks while there are two sides": {with(func(q *world.Rotation) { q.Sides = true }),
			world.RotationNone, ""},
		"asked, and nobody takes writes": {
			asked(func(q *world.Rotation) { q.Primary = "" }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"asked of an agent that can't": {
			asked(func(q *world.Rotation) { q.Able = false }), world.RotationWait, v1.ReasonRotationWaits,
		},
		"asked again while the Secret is there": {
			asked(func(q *world.Rotation) { q.Given = false }), world.RotationGive, "",
		},
		"the former Secret is still there": {
			with(func(q *world.Rotation) { q.Written, q.Given = false, false }), world.RotationWait,
			v1.ReasonWritingSecret,
		},
		"the Secret is there, and the server has another": {
			with(func(q *world.Rotation) { q.Given = false }), world.RotationGive, "",
		},
		"the Secret is there, and nobody takes writes": {
			with(func(q *world.Rotation) { q.Given, q.Primary = false, "" }), world.RotationWait,
			v1.ReasonSettingPassword,
		},
		"the Secret is there, and an agent leads that can't": {
			with(func(q *world.Rotation) { q.Given, q.Able = false, false }), world.RotationWait,
			v1.ReasonSettingPassword,
		},
		"the Secret is there, and an earlier state is being restored": {
			with(func(q *world.Rotation) { q.Given, q.Restoring = false, true }), world.RotationWait,
			v1.ReasonSettingPassword,
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
