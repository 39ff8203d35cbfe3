package limits

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func object(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "n", Name: name}
}

func TestWhoHasAskedFirstIsFirst(t *testing.T) {
	p := &Places{asked: map[types.NamespacedName]asked{}}
	for i, c := range []struct {
		name   string
		second int
		want   int
	}{
		{"a", 0, 0}, {"b", 1, 1}, {"c", 2, 2},
		{"b", 60, 1}, {"c", 61, 2}, // a has not asked again, and is waited for
		{"a", 90, 0},
		{"c", 150, 2}, {"b", 185, 2}, // b was silent for so long that it begins anew
		{"c", 186, 1},
		{"c", 300, 0}, // a has given up, and b since before
	} {
		if got := p.before(object(c.name), night.Add(time.Duration(c.second)*time.Second)); got != c.want {
			t.Errorf("%d: before %s at %d s are %d, want %d", i, c.name, c.second, got, c.want)
		}
	}
}

func TestEverybodyGetsAPlaceInTheEnd(t *testing.T) {
	p := &Places{asked: map[types.NamespacedName]asked{}}
	got := map[string]int{}
	for round := range 400 { // in each second one place, for ten that ask each second, the last first
		now := night.Add(time.Duration(round) * time.Second)
		taken := ""
		for n := 9; n >= 0; n-- {
			name := fmt.Sprint("db-", n)
			if p.before(object(name), now) == 0 && taken == "" {
				taken = name
				delete(p.asked, object(name))
			}
		}
		got[taken]++
	}
	for n := range 10 {
		if times := got[fmt.Sprint("db-", n)]; times < 30 {
			t.Errorf("db-%d had a place %d times of 400: %v", n, times, got)
		}
	}
}

func TestWithoutABoundAllAreTaken(t *testing.T) {
	for name, p := range map[string]*Places{"none": nil, "0": {}} {
		made := false
		taken, err := p.Take(t.Context(), object("a"), "job", night, func() error { made = true; return nil })
		if !taken || !made || err != nil {
			t.Errorf("%s: %v %v %v", name, taken, made, err)
		}
	}
}
