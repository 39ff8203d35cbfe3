package cluster

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWithAddsAFaultOnce(t *testing.T) {
	cases := map[string]struct {
		added Fault
		count int
	}{
		"another kind on the same node":  {Fault{Kind: Frozen, On: "worker0"}, 3},
		"the same again":                 {Fault{Kind: Cut, On: "worker0"}, 2},
		"the same pair, said in reverse": {Fault{Kind: CutFromNode, On: "worker2", From: "worker1"}, 2},
		"another pair":                   {Fault{Kind: CutFromNode, On: "worker1", From: "worker0"}, 3},
	}
	before := []Fault{{Kind: Cut, On: "worker0"}, {Kind: CutFromNode, On: "worker1", From: "worker2"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := with(before, c.added); len(got) != c.count || len(before) != 2 {
				t.Errorf("there are then %v", got)
			}
		})
	}
}

func TestAFrozenOrKilledNodeIsRefused(t *testing.T) {
	faults := []Fault{{Kind: Frozen, On: "worker0"}, {Kind: Killed, On: "worker1"}, {Kind: Cut, On: "worker2"}}
	cases := map[string]struct {
		node  string
		kinds []Kind
		err   string
	}{
		"one that is frozen":               {"worker0", []Kind{Killed, Frozen}, "thaw it first"},
		"one that was killed":              {"worker1", []Kind{Killed, Frozen}, "node start worker1"},
		"one that is only cut":             {"worker2", []Kind{Killed, Frozen}, ""},
		"one that is frozen, but may be":   {"worker0", []Kind{Killed}, ""},
		"one that is cut, and must not be": {"worker2", []Kind{Cut}, "worker2 is cut"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := refuse(faults, c.node, c.kinds...)
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAFaultIsNotedWhileItIsMadeAndNoLongerIfThatFails(t *testing.T) {
	frozen, stopped := Fault{Kind: Frozen, On: "worker0"}, Fault{Kind: KubeletStopped, On: "worker0"}
	survives := errors.New("it survives SIGKILL")
	cases := map[string]struct {
		before []Fault
		err    error
		count  int
	}{
		"it is made":                             {[]Fault{frozen}, nil, 2},
		"it is made again":                       {[]Fault{frozen, stopped}, nil, 2},
		"it cannot be made":                      {[]Fault{frozen}, survives, 1},
		"it cannot be made again, but was there": {[]Fault{frozen, stopped}, survives, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "faults.json")
			if err := writeFaults(file, c.before); err != nil {
				t.Fatal(err)
			}
			err := inflict(file, []Fault{stopped}, func() error {
				if meanwhile, err := readFaults(file); err != nil || !has(meanwhile, stopped.Kind, stopped.On) {
					t.Errorf("while it is made there are %v, %v", meanwhile, err)
				}
				return c.err
			})
			if !errors.Is(err, c.err) {
				t.Errorf("the error is %v", err)
			}
			if got, err := readFaults(file); err != nil || len(got) != c.count {
				t.Errorf("there are then %v, %v", got, err)
			}
		})
	}
}

func TestCutsSaysAsFaultsWhatTheUserSaysAsNames(t *testing.T) {
	c := sample(t)
	cases := map[string]struct {
		node string
		from []string
		want []Fault
		err  string
	}{
		"everything": {"worker0", nil, []Fault{{Kind: Cut, On: "worker0"}}, ""},
		"the API":    {"worker0", []string{"api"}, []Fault{{Kind: CutFromAPI, On: "worker0"}}, ""},
		"a node": {
			"worker0", []string{"worker1"}, []Fault{{Kind: CutFromNode, On: "worker0", From: "worker1"}}, "",
		},
		"itself":      {"worker0", []string{"worker0"}, nil, "itself"},
		"nobody":      {"worker0", []string{"worker7"}, nil, `"worker7"`},
		"an odd node": {"worker7", nil, nil, `"worker7"`},
	}
	for name, cs := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.cuts(cs.node, cs.from)
			if !slices.Equal(got, cs.want) {
				t.Errorf("got %v, want %v", got, cs.want)
			}
			if (cs.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), cs.err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestCutOfAndGatewayFollowFromTheFaults(t *testing.T) {
	c := sample(t)
	faults := []Fault{
		{Kind: Killed, On: "worker0"},
		{Kind: CutFromAPI, On: "worker1"},
		{Kind: CutFromNode, On: "worker1", From: "worker2"},
	}
	if cut := c.cutOf(c.nodes[0], faults); !cut.Link || cut.API || len(cut.Nodes) > 0 {
		t.Errorf("a killed node's cut is %+v", cut)
	}
	if cut := c.cutOf(c.nodes[1], faults); cut.Link || !cut.API || len(cut.Nodes) != 1 ||
		cut.Nodes[0].Name != "worker2" {
		t.Errorf("worker1's cut is %+v", cut)
	}
	if got := c.gateway(faults); got.Name != "worker1" {
		t.Errorf("with worker0 killed, Services are reached through %s", got.Name)
	}
}

func TestStatusPrintsFaultsAndProcesses(t *testing.T) {
	c := sample(t)
	status := Status{
		Cluster: "partial",
		Nodes:   []NodeStatus{{Node: c.nodes[0], Ready: "unknown", Link: "down"}},
		Processes: []ProcessStatus{
			{Name: "etcd", State: "running", PID: 7}, {Name: "worker0-kubelet", State: "stopped"},
		},
		Faults: []Fault{{Kind: CutFromNode, On: "worker0", From: "worker1"}},
	}
	var b strings.Builder
	if err := status.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"unknown  down  198.18.0.10", "etcd             running  7",
		"worker0-kubelet  stopped  -", "worker0 cut-from-node worker1",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}

func sample(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{out: io.Discard}
	if err := c.configure(Config{Nodes: 3}); err != nil {
		t.Fatal(err)
	}
	return c
}
