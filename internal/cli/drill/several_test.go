package drill

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestWhatIsWrongWithTheArgumentsOfADrill(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		flags []string
		words string
	}{
		"one":                  {[]string{"shop"}, []string{"--fault=PodKilled"}, ""},
		"its history":          {[]string{"shop"}, nil, ""},
		"several":              {nil, []string{"--fault=PodKilled", "--selector=app=shop"}, ""},
		"none":                 {nil, []string{"--fault=PodKilled"}, "give the NAME"},
		"one and several":      {[]string{"shop"}, []string{"--fault=PodKilled", "-l=app=shop"}, "give the NAME"},
		"the history of many":  {nil, []string{"--selector=app=shop"}, "goes with --fault"},
		"further faults alone": {[]string{"shop"}, []string{"--meanwhile=APIAway=All"}, "goes with --fault"},
		"a network":            {[]string{"shop"}, []string{"--fault=NetworkCut"}, "CAP_NET_ADMIN"},
		"a node":               {[]string{"shop"}, []string{"--fault=NodeDrained"}, "Use --fault PodDeleted, by"},
		"an agent that hangs":  {[]string{"shop"}, []string{"--fault=AgentHung"}, "Use --fault AgentKilled"},
		"a slow disk":          {nil, []string{"--fault=DiskStalled", "-l=a"}, "Use --fault ServerHung"},
		"a fault of no sort":   {[]string{"shop"}, []string{"--fault=Fire"}, "choose one of ServerKilled, "},
		"a further network": {
			[]string{"shop"}, []string{"--fault=PodKilled", "--meanwhile=PacketsLost=All"}, "--fault ByHand",
		},
		"several and no waits": {nil, []string{"--fault=PodKilled", "-l=a", "--wait=false"}, "--wait=false"},
	} {
		command := Drill()
		if err := command.ParseFlags(c.flags); err != nil {
			t.Fatal(err)
		}
		err := command.Args(command, c.args)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is broken before it is known that all may be.
func TestWhichSampleDBsMayBeBroken(t *testing.T) {
	db := func(name string, allows bool) (out v1.SampleDB) {
		out.Name = name
		if allows {
			out.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
		}
		return out
	}
	names, err := allowed([]v1.SampleDB{db("shop", true), db("crm", true)})
	if err != nil || !slices.Equal(names, []string{"crm", "shop"}) {
		t.Errorf("they are %q, %v", names, err)
	}
	_, err = allowed([]v1.SampleDB{db("shop", false), db("crm", true), db("blog", false)})
	if err == nil || !strings.Contains(err.Error(), "annotate sampledb blog shop toban.dev/fault-drills=allowed") {
		t.Errorf("it says %v", err)
	}
}

// One that has not passed does not keep the others from their drills. One that is not over does.
func TestDrillsGoOneAfterTheOther(t *testing.T) {
	over := func(d *v1.FaultDrill) { d.Status.CompletedAt = &metav1.Time{Time: time.Unix(1, 0)} }
	outcome := map[string]func() (*v1.FaultDrill, error){
		"passed":  func() (*v1.FaultDrill, error) { return overDrill(over), nil },
		"too-bad": func() (*v1.FaultDrill, error) { return overDrill(over, tooLong), errors.New("not passed") },
		"left":    func() (*v1.FaultDrill, error) { return overDrill(), errors.New("it goes on unwatched") },
		"refused": func() (*v1.FaultDrill, error) { return nil, errors.New("create the FaultDrill") },
	}
	for name, c := range map[string]struct {
		dbs   []string
		begun int
		words string
	}{
		"all are done":       {[]string{"too-bad", "passed", "passed"}, 3, ""},
		"nobody watches one": {[]string{"passed", "left", "passed"}, 2, "unwatched"},
		"one is refused":     {[]string{"passed", "refused", "passed"}, 2, "create the FaultDrill"},
	} {
		begun := 0
		_, stopped := oneByOne(c.dbs, func(db string) (*v1.FaultDrill, error) {
			begun++
			return outcome[db]()
		})
		if begun != c.begun || (stopped == nil) != (c.words == "") ||
			stopped != nil && !strings.Contains(stopped.Error(), c.words) {
			t.Errorf("%s: %d have begun, and it stopped for %v", name, begun, stopped)
		}
	}
}

func TestTheSummaryOfSeveralDrills(t *testing.T) {
	of := func(db string) func(*v1.FaultDrill) { return func(d *v1.FaultDrill) { d.Spec.SampleDB = db } }
	drills := []v1.FaultDrill{*overDrill(of("blog")), *overDrill(of("shop"), tooLong)}
	var out strings.Builder
	if err := tellSummary(&out, drills); err != nil {
		t.Fatal(err)
	}
	want := `
SAMPLEDB  DRILL  FAULT         INSTANCE  OUTAGE  LOST  RESULT
blog      d      ServerKilled  shop-0    1.20s   0     passed
shop      d      ServerKilled  shop-0    1.20s   0     OutageTooLong
`
	if out.String() != want {
		t.Errorf("it shows\n%s", out.String())
	}
	if err := notPassed(drills); err == nil || err.Error() != "1 of 2 have not passed: shop" {
		t.Errorf("it says %v", err)
	}
	if err := notPassed(drills[:1]); err != nil {
		t.Errorf("all have passed: %v", err)
	}
}
