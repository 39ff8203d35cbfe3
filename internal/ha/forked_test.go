package ha

import "testing"

func TestDecideAfterAPromotionThatNobodyWasElectedFor(t *testing.T) {
	t.Parallel()
	unelected := local(func(l *Local) { l.Unelected = true })
	forked := local(func(l *Local) { l.Data = DataForked })
	failed := local(func(l *Local) { l.RewindFailed = true })
	leads := hears("db-0", leader("db-0", 1))
	check(t, map[string]decided{
		"a standby that takes writes is stopped": {
			three("db-1", standby("db-1", 1, "db-0"), leads, unelected), Disown, "", "NotElected",
		},
		"also when nobody is heard": {
			three("db-1", standby("db-1", 1, "db-0"), silent, unelected), Disown, "", "NotElected",
		},
		"also when it is to be elected": {
			three("db-1", stopped("db-1", 1, ""), without2, unelected), Disown, "", "NotElected",
		},
		"what it has written is taken back": {
			three("db-1", stopped("db-1", 1, "db-0"), leads, forked), Rewind, "db-0", "DataForked",
		},
		"a copy is made where that fails": {
			three("db-1", stopped("db-1", 1, "db-0"), leads, forked, failed), Clone, "db-0", "DataForked",
		},
		"it runs nothing and stands for nothing while nobody leads": {
			three("db-1", stopped("db-1", 1, "db-0"), silent, without2, forked), Wait, "", "DataForked",
		},
		"it is rewound one after the other": {
			three("db-1", stopped("db-1", 1, "db-2"), forked, hears("db-2", leader("db-2", 1)),
				hears("db-0", Peer{Rebuilding: true})), Wait, "", "Rebuilding",
		},
	})
}

// without2 has db-2 without a leader, so that a majority could elect.
func without2(v *View) { v.Peers["db-2"] = without(follower("db-2", 1, "db-0")) }
