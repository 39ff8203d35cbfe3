package desired

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

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
			settings := PoolSettings(db, protocol.Config{})
			if got := PoolConnections(db); got != c.all || settings.Connections != c.eachOfPods {
				t.Errorf("all Pods have %d, want %d, each %d, want %d", got, c.all, settings.Connections, c.eachOfPods)
			}
		})
	}
}
