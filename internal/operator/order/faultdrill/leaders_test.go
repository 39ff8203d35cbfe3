package faultdrill

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

// app is a MyApp that has a leader, changed by modifiers.
func app(name string, modify ...func(*appv1.MyApp)) appv1.MyApp {
	a := appv1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			naming.AnnotationFaultDrills: naming.FaultDrillsAllowed,
		}},
		Spec: appv1.MyAppSpec{Leader: true}, Status: appv1.MyAppStatus{Leader: name + "-a"},
	}
	for _, m := range modify {
		m(&a)
	}
	return a
}

func noElection(a *appv1.MyApp) { a.Spec.Leader, a.Status.Leader = false, "" }
func forbidden(a *appv1.MyApp)  { a.Annotations = nil }
func unled(a *appv1.MyApp)      { a.Status.Leader = "" }

// What is refused of LeaderKilled is said with what to do; MyApps that don't allow it, or have no leader to lose, are
// left alone.
func TestWhoseLeadersAreKilled(t *testing.T) {
	for name, c := range map[string]struct {
		users []appv1.MyApp
		want  string
		says  string
	}{
		"one": {[]appv1.MyApp{app("blog")}, "blog", ""},
		"all that may": {
			[]appv1.MyApp{app("blog"), app("crm", forbidden), app("docs", noElection), app("shop")}, "blog, shop", "",
		},
		"nobody": {nil, "", "no MyApp of the namespace has db"},
		"nobody elects": {
			[]appv1.MyApp{app("blog", noElection), app("crm", noElection)}, "",
			"none on this SampleDB has it (blog, crm)",
		},
		"nobody allows it": {
			[]appv1.MyApp{app("blog", forbidden), app("crm", noElection), app("shop", forbidden)}, "",
			"kubectl annotate myapp blog shop toban.dev/fault-drills=allowed",
		},
		"one has no leader now": {
			[]appv1.MyApp{app("blog"), app("shop", unled)}, "blog, shop", "no Pod leads MyApp shop now",
		},
		"one that is left alone has none": {[]appv1.MyApp{app("blog"), app("shop", unled, forbidden)}, "blog", ""},
	} {
		apps, why := led("db", c.users)
		if named(apps) != c.want || (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s: the leaders of %q: %q", name, named(apps), why)
		}
	}
}
