package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// in places instances, by ordinal, in zones of one letter each; "?" is not known.
func in(zones string) placement {
	p := placement{}
	for i, zone := range zones {
		p["x-"+string(rune('0'+i))] = string(zone)
		if zone == '?' {
			p["x-"+string(rune('0'+i))] = ""
		}
	}
	return p
}

func TestWhetherTheLossOfAZoneIsSurvived(t *testing.T) {
	const spread, one, most, unknown = v1.ReasonZonesSpread, v1.ReasonOneZone, v1.ReasonZoneHoldsMajority,
		v1.ReasonZonesUnknown
	for name, c := range map[string]struct{ zones, want string }{
		"two in two zones, with the API":          {"ab", spread},
		"two in one zone":                         {"aa", one},
		"three in three zones":                    {"abc", spread},
		"three in two zones":                      {"aab", most},
		"three in one zone":                       {"aaa", one},
		"four in four zones":                      {"abcd", spread},
		"of four, two in one zone: three elect":   {"aabc", most},
		"four in two zones":                       {"aabb", most},
		"five in three zones":                     {"aabbc", spread},
		"five in two zones":                       {"aaabb", most},
		"of five, three in one zone":              {"aaabc", most},
		"nine in three zones":                     {"aaabbbccc", spread},
		"of nine, four in one zone":               {"aaaabbbcc", spread},
		"of nine, five in one zone":               {"aaaaabbcc", most},
		"one of three is not known":               {"ab?", unknown},
		"one of five is not known, and could tip": {"aabb?", unknown},
		"one of five is not known, and could not": {"abcd?", spread},
		"of five, what is known is too much":      {"aaab?", most},
		"nothing is known":                        {"???", unknown},
		"of two, one is not known":                {"a?", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := in(c.zones).survives()
			if got.Reason != c.want {
				t.Errorf("%s: %s: %s, want %s", c.zones, got.Reason, got.Message, c.want)
			}
			status := map[string]metav1.ConditionStatus{spread: metav1.ConditionTrue, unknown: metav1.ConditionUnknown}
			want, known := status[c.want]
			if !known {
				want = metav1.ConditionFalse
			}
			if got.Status != want {
				t.Errorf("%s: the status is %s, want %s", c.zones, got.Status, want)
			}
		})
	}
}

func TestWhatToDoAboutZones(t *testing.T) {
	for zones, want := range map[string]string{
		"aab": "zone a has 2 of 3 instances (x-0, x-1): while it is lost, the others can't elect a primary, and " +
			"nobody takes writes. Each should be in a zone of its own, which takes 3 zones",
		"aaabb": "zone a has 3 of 5 instances (x-0, x-1, x-2): while it is lost, the others can't elect a primary, " +
			"and nobody takes writes. At most 2 should be in one zone, which takes 3 zones",
		"aaa": "all instances are in zone a: while it is lost, nobody takes writes. Each should be in a zone of its " +
			"own, which takes 3 zones",
		"ab": "whichever zone is lost, the instances of the others take writes: a (x-0), b (x-1); of two, the one " +
			"that is left needs the Kubernetes API for that",
	} {
		if got := in(zones).survives().Message; got != want {
			t.Errorf("%s: got %q, want %q", zones, got, want)
		}
	}
}
