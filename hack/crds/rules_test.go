package main

import "testing"

func TestRulesSayTheSameInFewerBytes(t *testing.T) {
	for rule, want := range map[string]string{
		"self >= 1 && self <= 9":           "!(self < 1 || self > 9)",
		"self.keep >= 1 && self.keep <= 5": "!(self.keep < 1 || self.keep > 5)",
		"self.a >= 1 && self.b <= 5":       "self.a >= 1 && self.b <= 5",
		"duration(self) >= duration('1s') && duration(self) <= duration('1h')": "!(duration(self) < duration('1s')" +
			" || duration(self) > duration('1h'))",
		"!self.matches('[eE]') && isQuantity(self)": "!(self.matches('[eE]') || !isQuantity(self))",
		"self >= 1": "self >= 1",
		"has(self.a) && self.b >= 1 && self.b <= 2": "has(self.a) && self.b >= 1 && self.b <= 2",
	} {
		if got := turned(rule); got != want {
			t.Errorf("%q becomes %q, wanted %q", rule, got, want)
		}
	}
}
