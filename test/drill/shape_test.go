package main

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryShapeIsMadeOfFaultsThatThereAre(t *testing.T) {
	rows, err := entries(faults(options{}), []Run{{Fault: "one+another"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shapes {
		count := 0
		for _, e := range rows {
			if e.shape == s.name {
				count++
			}
		}
		if count < 5 || s.name != usual && count > 15 {
			t.Errorf("%s has %d faults", s.name, count)
		}
		if len(s.members()) != int(s.instances) || s.members()[0] != "drill-0" {
			t.Errorf("the members of %s are %q", s.name, s.members())
		}
	}
	if !slices.Contains(rows, entry{usual, "one+another"}) {
		t.Error("a run of a fault that is in no table has no row")
	}
	if slices.Contains(rows, entry{"two", "primary-and-standby-node"}) {
		t.Error("two instances can't lose both")
	}
}

func TestARunIsOfTheUsualShapeWhereItNamesNone(t *testing.T) {
	old := Run{Fault: "node-cut"}
	if !(entry{usual, "node-cut"}).has(old) || (entry{"five", "node-cut"}).has(old) {
		t.Error("it has another shape")
	}
	if s, err := shapeNamed(""); err != nil || s.name != usual || s.mayLose {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := shapeNamed("four"); err == nil || !strings.Contains(err.Error(), "five") {
		t.Errorf("the error does not say what there is: %v", err)
	}
}

func TestWhatIsLostInAsyncIsCountedAndNotWrong(t *testing.T) {
	r := Run{Shape: "async", Lost: 3, Acked: 10, Overlap: 2, Linearizable: "Illegal"}
	if got := r.wrongs(); len(got) > 0 {
		t.Errorf("async: %q", got)
	}
	verdicts, _ := tablesOf(made([]Run{r}), []Run{r})
	if !slices.Contains(verdicts[1], "3 of 10") {
		t.Errorf("not counted: %q", verdicts[1])
	}
	r.Problems = []string{"it does not get whole again"}
	if got := r.wrongs(); len(got) != 1 {
		t.Errorf("a problem of its own: %q", got)
	}
	for _, shape := range []string{"", "three", "five", "two"} {
		if r := (Run{Shape: shape, Lost: 3, Overlap: 2, Linearizable: "Illegal"}); len(r.wrongs()) != 3 {
			t.Errorf("%q: %q", shape, r.wrongs())
		}
	}
}
