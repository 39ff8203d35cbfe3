package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster/clustertest"
	"toban.dev/internal/naming"
)

func TestThePodThatPsqlRunsIn(t *testing.T) {
	pod := func(name, role string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{naming.LabelRole: role}}}
	}
	ending := pod("x-0", "primary")
	ending.DeletionTimestamp = &metav1.Time{}
	all := []corev1.Pod{pod("x-0", "standby"), pod("x-1", "primary"), pod("x-2", "")}
	for name, c := range map[string]struct {
		choice     InstanceChoice
		pods       []corev1.Pod
		want, says string
	}{
		"the primary":                 {InstanceChoice{}, all, "x-1", ""},
		"a standby":                   {InstanceChoice{Replica: true}, all, "x-0", ""},
		"a named one without role":    {InstanceChoice{Name: "x-2"}, all, "x-2", ""},
		"one that is not there":       {InstanceChoice{Name: "x-3"}, all, "", "x-0, x-1, x-2"},
		"nobody leads":                {InstanceChoice{}, all[:1], "", "no primary"},
		"there is no standby":         {InstanceChoice{Replica: true}, all[1:], "", "no standby"},
		"the primary's Pod is ending": {InstanceChoice{}, []corev1.Pod{ending}, "", "no primary"},
	} {
		got, err := c.choice.Pick("x", c.pods)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Who writes by hand writes where clients do.
func TestWhichSideIsConnectedTo(t *testing.T) {
	changed := clustertest.OnSides(v1.SidesChanged, v1.SideGreen)
	for _, test := range []struct {
		db   *v1.SampleDB
		name string
		want string
	}{
		{clustertest.ThreeReady(), "", "shop"}, {clustertest.OnSides(v1.SidesReady, v1.SideBlue), "", "shop"},
		{changed, "", "shop-green"}, {changed, "shop-1", "shop"}, {changed, "shop-green-1", "shop-green"},
	} {
		if got := servingSide(test.db, InstanceChoice{Name: test.name}); got != test.want {
			t.Errorf("%q is looked for among the instances of %s, not of %s", test.name, got, test.want)
		}
	}
}
