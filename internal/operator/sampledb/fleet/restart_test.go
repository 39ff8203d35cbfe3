package fleet

import (
	"reflect"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestWhichServersARestartThatIsAskedForHasLeft(t *testing.T) {
	three := []string{"x-0", "x-1", "x-2"}
	all := naming.RestartAll
	runs := func(list ...string) map[string]string {
		out := map[string]string{}
		for i, run := range list {
			if run != "?" {
				out[three[i]] = run
			}
		}
		return out
	}
	under := func(asked string, left ...v1.ServerRun) *v1.RestartStatus {
		return &v1.RestartStatus{Step: v1.RestartRestarting, Asked: asked, Left: left}
	}
	zero, one, two := v1.ServerRun{Instance: "x-0", Run: "1"}, v1.ServerRun{Instance: "x-1", Run: "1"},
		v1.ServerRun{Instance: "x-2", Run: "1"}
	ended := &v1.RestartStatus{Step: v1.RestartRestarted, Asked: all}
	for name, c := range map[string]struct {
		request restartRequest
		step    string
		left    []v1.ServerRun
	}{
		"nobody asks":                     {restartRequest{}, "", nil},
		"nobody asks after one has ended": {restartRequest{noted: ended}, v1.RestartRestarted, nil},
		"nobody asks any more":            {restartRequest{noted: under(all, zero)}, "", nil},
		"for one that is not there": {
			restartRequest{asked: "x-3", runs: runs("1", "1", "1")}, v1.RestartRefused,
			nil,
		},
		"of all: their runs are noted": {
			restartRequest{asked: all, runs: runs("1", "1", "1")}, v1.RestartRestarting,
			[]v1.ServerRun{zero, one, two},
		},
		"of one: its run is noted": {
			restartRequest{asked: "x-1", runs: runs("?", "1", "?")}, v1.RestartRestarting,
			[]v1.ServerRun{one},
		},
		"one does not answer at first": {
			restartRequest{asked: all, runs: runs("1", "?", "1")}, v1.RestartWaiting,
			nil,
		},
		"one does not say its run yet": {
			restartRequest{asked: all, runs: runs("1", "", "1")}, v1.RestartWaiting,
			nil,
		},
		"an agent is of an earlier release": {
			restartRequest{asked: all, runs: runs("1", "", "1"), ready: map[string]bool{"x-1": true}},
			v1.RestartRefused, nil,
		},
		"again after one has ended": {
			restartRequest{asked: all, noted: ended, runs: runs("1", "1", "1")}, v1.RestartRestarting,
			[]v1.ServerRun{zero, one, two},
		},
		"one has restarted": {
			restartRequest{asked: all, noted: under(all, zero, one, two), runs: runs("1", "1", "2")},
			v1.RestartRestarting, []v1.ServerRun{zero, one},
		},
		"one that is away has not restarted": {
			restartRequest{asked: all, noted: under(all, zero, one), runs: runs("1", "?", "2")}, v1.RestartRestarting,
			[]v1.ServerRun{zero, one},
		},
		"one whose server is down has not restarted": {
			restartRequest{asked: all, noted: under(all, one), runs: runs("2", "", "2")}, v1.RestartRestarting,
			[]v1.ServerRun{one},
		},
		"all have": {
			restartRequest{asked: all, noted: under(all, zero), runs: runs("2", "2", "2")}, v1.RestartRestarted,
			nil,
		},
		"one is no instance now": {
			restartRequest{
				asked: all, noted: under(all, v1.ServerRun{Instance: "x-3", Run: "1"}), runs: runs("2", "2", "2"),
			},
			v1.RestartRestarted, nil,
		},
		"another is asked for now": {
			restartRequest{asked: "x-1", noted: under(all, zero), runs: runs("1", "1", "2")}, v1.RestartRestarting,
			[]v1.ServerRun{one},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.members = three
			got := c.request.next()
			if got == nil {
				got = &v1.RestartStatus{}
			}
			if got.Step != c.step || !reflect.DeepEqual(got.Left, c.left) && len(got.Left)+len(c.left) > 0 {
				t.Errorf("it is %+v", got)
			}
			if c.step == v1.RestartRefused && got.Message == "" {
				t.Error("it does not say why it is refused")
			}
		})
	}
}
