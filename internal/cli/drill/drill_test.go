package drill

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// overDrill is a FaultDrill that has ended, changed by modifiers.
func overDrill(modify ...func(*v1.FaultDrill)) *v1.FaultDrill {
	none := int64(0)
	d := &v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Name: "d", CreationTimestamp: metav1.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)},
		Spec:       v1.FaultDrillSpec{SampleDB: "shop", Fault: v1.FaultServerKilled},
		Status: v1.FaultDrillStatus{
			Phase: "Completed", Instance: "shop-0", Outage: "1.20s", Lost: &none,
			Clients: []v1.FaultDrillClient{{
				Way: "Service", Outage: metav1.Duration{Duration: 1200 * time.Millisecond}, Acknowledged: 100,
				Reads: 50, StaleReads: 7, Staleness: &metav1.Duration{Duration: 3 * time.Second},
				Errors: 2, FirstError: "FATAL: terminating connection\nHINT: try again",
			}},
			Conditions: []metav1.Condition{
				{
					Type: v1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1.ReasonCompleted,
					Message: "says it",
				},
				{Type: v1.ConditionPassed, Status: metav1.ConditionTrue, Reason: v1.ReasonObjectivesMet},
			},
		},
	}
	for _, m := range modify {
		m(d)
	}
	return d
}

// tooLong is a drill that has not passed, failed one that has no result.
func tooLong(d *v1.FaultDrill) {
	d.Status.Conditions[1].Status, d.Status.Conditions[1].Reason = metav1.ConditionFalse, v1.ReasonOutageTooLong
}

func apiAway(d *v1.FaultDrill) {
	d.Spec.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultAPIAway, Instance: v1.DrillAll}}
	d.Status.Meanwhile = []string{"shop-0, shop-1"}
}

func failed(d *v1.FaultDrill) {
	d.Status.Conditions = d.Status.Conditions[:1]
	d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = metav1.ConditionFalse, v1.ReasonFailed
	d.Status.Phase, d.Status.Outage, d.Status.Lost = "Failed", "", nil
}

func TestWhatADrillTells(t *testing.T) {
	for name, c := range map[string]struct {
		drill      *v1.FaultDrill
		out, error string
	}{
		"it has passed": {overDrill(), "passed: ServerKilled of shop-0: says it\n", ""},
		"of several faults": {
			overDrill(apiAway), "passed: ServerKilled + APIAway of shop-0 + shop-0, shop-1: says it\n", "",
		},
		"it has not":         {overDrill(tooLong), "Service  1.20s  ", "not passed"},
		"it has no result":   {overDrill(failed), "", "no result: Failed: says it"},
		"how old reads were": {overDrill(), "  50     7      3.00s   2 ", ""},
		"a hint is left out": {overDrill(), "terminating connection\npassed", ""},
	} {
		var out strings.Builder
		err := tellDrill(&out, c.drill, &c.drill.Status.Conditions[0])
		if !strings.Contains(out.String(), c.out) || (err == nil) != (c.error == "") ||
			err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestFurtherFaultsOfADrill(t *testing.T) {
	parts, err := partsOf([]string{"ServerKilled=Primary", "APIAway=All"})
	want := []v1.FaultDrillPart{
		{Fault: v1.FaultServerKilled, Instance: v1.DrillPrimary}, {Fault: v1.FaultAPIAway, Instance: v1.DrillAll},
	}
	if err != nil || !slices.Equal(parts, want) {
		t.Errorf("they are %v, %v", parts, err)
	}
	if _, err := partsOf([]string{"APIAway"}); err == nil || !strings.Contains(err.Error(), "APIAway=Primary") {
		t.Errorf("it does not say what to write: %v", err)
	}
}

// The words of further faults are completed one after the other, each by its fault and then by its instance.
func TestFurtherFaultsAreCompleted(t *testing.T) {
	for word, want := range map[string]string{
		"Repl": "ReplayPaused=", "ReplayPaused=": "Primary Standby All Zone", "ReplayPaused=S": "Standby",
		"APIAway=All,Server": "ServerKilled= ServerHung=", "APIAway=All,ServerHung=P": "Primary", "Fire": "",
	} {
		found, _ := completeMeanwhile(nil, nil, word)
		before, _, _ := strings.Cut(word, ",")
		for i, one := range found {
			if strings.Contains(word, ",") {
				if !strings.HasPrefix(one, before+",") {
					t.Errorf("%s: %s has lost what was typed", word, one)
				}
				one = strings.TrimPrefix(one, before+",")
			}
			if _, instance, _ := strings.Cut(one, "="); instance != "" {
				one = instance
			}
			found[i] = one
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s is completed with %s, want %s", word, got, want)
		}
	}
}

func TestTheHistoryOfDrills(t *testing.T) {
	var out strings.Builder
	waiting := overDrill(failed)
	waiting.Status.Phase, waiting.Status.Conditions = "Pending", nil
	if err := tellDrills(&out, "shop", []v1.FaultDrill{*overDrill(), *overDrill(tooLong), *waiting}); err != nil {
		t.Fatal(err)
	}
	want := `CREATED               DRILL  FAULT         INSTANCE  OUTAGE  LOST  RESULT
2026-11-25T03:00:00Z  d      ServerKilled  shop-0    1.20s   0     passed
2026-11-25T03:00:00Z  d      ServerKilled  shop-0    1.20s   0     OutageTooLong
2026-11-25T03:00:00Z  d      ServerKilled  shop-0                  Pending
`
	if out.String() != want {
		t.Errorf("it shows\n%s", out.String())
	}
	out.Reset()
	if err := tellDrills(&out, "shop", nil); err != nil || !strings.Contains(out.String(), "had no drill") {
		t.Errorf("without any: %v, %s", err, out.String())
	}
}
