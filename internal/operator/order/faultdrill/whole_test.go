package faultdrill

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "toban.dev/api/myapp/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/order"
)

// What a SampleDB lacks after a fault depends on the fault.
func TestWhatIsLackingAfterAFault(t *testing.T) {
	not := func(kinds ...string) func(*scope) {
		return func(s *scope) {
			for _, kind := range kinds {
				for i := range s.seen.db.Status.Conditions {
					if c := &s.seen.db.Status.Conditions[i]; c.Type == kind {
						c.Status = metav1.ConditionFalse
					}
				}
			}
		}
	}
	archive := func(atEnd, written, archived string) func(*scope) {
		return func(s *scope) {
			s.Object.Status.WALAtEnd, s.seen.archive = atEnd, archiveView{written, archived}
		}
	}
	leads := func(leader string) func(*scope) {
		return func(s *scope) {
			s.Object.Status.Instance = "blog-a, shop-a"
			s.seen.apps = []appv1.MyApp{app("blog", func(a *appv1.MyApp) { a.Status.Leader = "blog-b" }),
				app("shop", func(a *appv1.MyApp) { a.Status.Leader = leader })}
		}
	}
	for name, c := range map[string]struct {
		fault v1.FaultDrillFault
		is    func(*scope)
		says  string
	}{
		"nothing":                {v1.FaultServerKilled, not(), ""},
		"an instance":            {v1.FaultServerKilled, not(v1.ConditionReady), "not Ready and Durable"},
		"commits":                {v1.FaultServerKilled, not(v1.ConditionDurable), "not Ready and Durable"},
		"poolers":                {v1.FaultPoolersKilled, not(v1.ConditionPoolerReady), "poolers"},
		"poolers, of others":     {v1.FaultServerKilled, not(v1.ConditionPoolerReady, v1.ConditionArchiving), ""},
		"it still lasts":         {v1.FaultArchiveAway, archive("", "", ""), "archive"},
		"it is over":             {v1.FaultArchiveAway, archive("", "0/3000000", "0/2000000"), "archive"},
		"some is archived":       {v1.FaultArchiveAway, archive("0/3000000", "0/4000000", "0/2FFFFFF"), "archive"},
		"all of then is":         {v1.FaultArchiveAway, archive("0/3000000", "0/4000000", "0/3000000"), ""},
		"the agent is not heard": {v1.FaultArchiveAway, archive("0/3000000", "", ""), "archive"},
		"it is archived, and there is a gap": {v1.FaultArchiveAway, func(s *scope) {
			archive("0/3000000", "0/4000000", "0/4000000")(s)
			not(v1.ConditionArchiving)(s)
		}, "archive"},
		"no leader":         {v1.FaultLeaderKilled, leads(""), "no other Pod leads MyApp shop"},
		"the former leader": {v1.FaultLeaderKilled, leads("shop-a"), "no other Pod leads MyApp shop"},
		"another leader":    {v1.FaultLeaderKilled, leads("shop-b"), ""},
	} {
		s := lookAt(&v1.FaultDrill{Spec: v1.FaultDrillSpec{Fault: c.fault}})
		s.seen.db = &v1.SampleDB{}
		for _, kind := range []string{v1.ConditionReady, v1.ConditionDurable, v1.ConditionPoolerReady,
			v1.ConditionArchiving} {
			s.seen.db.Status.Conditions = append(s.seen.db.Status.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		c.is(s)
		if got := s.lacks(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: it lacks %q", name, got)
		}
	}
}

// A verdict says what else was so again.
func TestAVerdictSaysWhatElseIsSoAgain(t *testing.T) {
	both := v1.FaultDrillSpec{
		Fault: v1.FaultArchiveAway, Meanwhile: []v1.FaultDrillPart{{Fault: v1.FaultLeaderKilled}},
	}
	for says, spec := range map[string]v1.FaultDrillSpec{
		"Ready and Durable again after 10s":                     {Fault: v1.FaultPodKilled},
		"again, with an archive that has caught up, after 10s":  {Fault: v1.FaultArchiveAway},
		"again, with another leader, after 10s":                 {Fault: v1.FaultLeaderKilled},
		"that has caught up and with another leader, after 10s": both,
	} {
		v := view{View: order.View{Now: now}, result: seen(), struck: ago(time.Minute),
			wholeSince: ago(50 * time.Second), besides: besides(spec)}
		if got := judge(v).Message; !strings.Contains(got, says) {
			t.Errorf("of %s it says %q", spec.Fault, got)
		}
	}
}
