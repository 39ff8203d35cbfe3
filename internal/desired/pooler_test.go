package desired

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// With an autoscaler, so many connections stay free as the most Pods it may ask for leave. What it asks for stays,
// within its limits.
func TestAnAutoscalersPoolers(t *testing.T) {
	db := sampleDB("one", func(db *v1.SampleDB) {
		db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, Autoscale: &v1.PoolerAutoscale{Max: 4, CPU: 70}}
	})
	pool := Pools(db)[0]
	if got := pool.Settings(db, protocol.Config{}, nil).Connections; got != 43/4 {
		t.Errorf("each Pod has %d connections", got)
	}
	for have, want := range map[int]int{0: 2, 1: 2, 3: 3, 4: 4, 9: 4} {
		if got := pool.Replicas(have, false); got != want {
			t.Errorf("where there are %d, %d are wanted, want %d", have, got, want)
		}
	}
	if got := pool.Replicas(3, true); got != 0 {
		t.Errorf("of a database that is stopped there are %d", got)
	}
}

func TestPoolsLeaveConnectionsFree(t *testing.T) {
	for name, c := range map[string]struct {
		most            v1.ParameterValue // max_connections
		pods, wanted    int32
		all, eachOfPods int
	}{
		"the default":                        {"100", 2, 0, 43, 21},
		"one Pod":                            {"100", 1, 0, 43, 43},
		"so many as are wanted":              {"100", 2, 60, 60, 30},
		"more than there are":                {"100", 2, 500, 87, 43},
		"more Pods than connections":         {"100", 20, 10, 10, 1},
		"a server that has hardly any":       {"14", 2, 0, 1, 1},
		"a server that has less than it has": {"5", 2, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			db := sampleDB("one", func(db *v1.SampleDB) {
				db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{"max_connections": c.most}
				db.Spec.Pooler = &v1.PoolerSpec{Instances: c.pods, Connections: c.wanted}
			})
			settings := Pools(db)[0].Settings(db, protocol.Config{}, nil)
			if got := PoolConnections(db); got != c.all || settings.Connections != c.eachOfPods {
				t.Errorf("all Pods have %d, want %d, each %d, want %d", got, c.all, settings.Connections, c.eachOfPods)
			}
		})
	}
}
