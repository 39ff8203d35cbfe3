package desired

import (
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
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

// The operator asks the poolers of a database that may sleep, and of no other one. They know that it sleeps, and the
// agents that they are to hold their clients before.
func TestAPoolerOfADatabaseThatSleeps(t *testing.T) {
	settings := Settings{Namespace: "toban-system"}
	wakes := &v1.StopStatus{Step: v1.StopStarting, Asleep: "2026-11-24T12:00:00Z"}
	asleep := &v1.StopStatus{Step: v1.StopStopped, Asleep: "2026-11-24T12:00:00Z"}
	for name, c := range map[string]struct {
		after    time.Duration
		stop     *v1.StopStatus
		asked    bool
		asleep   bool
		replicas int
	}{
		"it never sleeps":       {0, nil, false, false, 2},
		"it may sleep":          {time.Hour, nil, true, false, 2},
		"it sleeps":             {time.Hour, asleep, true, true, 2},
		"it wakes":              {time.Hour, wakes, true, false, 2},
		"it is stopped":         {time.Hour, &v1.StopStatus{Step: v1.StopStopped}, true, false, 0},
		"it was never to sleep": {0, &v1.StopStatus{Step: v1.StopStopped}, false, false, 0},
	} {
		db := sampleDB("one", func(db *v1.SampleDB) {
			db.Spec.Pooler, db.Status.Stop = &v1.PoolerSpec{Instances: 2}, c.stop
			if c.after > 0 {
				db.Spec.SleepAfter = c.after.String()
			}
		})
		pool, config := Pools(db)[0], Config(db, Known{Operator: "OPERATOR"})
		told := pool.Settings(db, config, nil)
		if (told.Operator == "OPERATOR") != c.asked || told.Asleep != c.asleep {
			t.Errorf("%s: the poolers are told %+v", name, told)
		}
		if config.Idles != (c.after > 0) || config.Holds != c.asleep {
			t.Errorf("%s: the agents look for clients: %t, have the poolers hold: %t", name, config.Idles, config.Holds)
		}
		if got := pool.Replicas(2, c.stop.Closed() && !c.stop.Sleeps()); got != c.replicas {
			t.Errorf("%s: there are %d poolers", name, got)
		}
		asked := false
		for _, rule := range pool.Policy(db, settings).Spec.Ingress {
			asked = asked || rule.Ports[0].Port.IntValue() == naming.PortAgent
		}
		if asked != c.asked {
			t.Errorf("%s: the operator reaches the poolers: %t", name, asked)
		}
	}
}
