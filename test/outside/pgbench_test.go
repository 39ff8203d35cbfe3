package outside

import "testing"

func TestReadPgbench(t *testing.T) {
	cases := map[string]struct {
		text string
		want Bench
	}{
		"a run that ended": {
			"number of transactions actually processed: 1234\ntps = 411.5 (without initial connection time)\n",
			Bench{Transactions: 1234, TPS: 411.5},
		},
		"a run that was cut off": {
			"number of transactions actually processed: 7/0\nRun was aborted\n", Bench{Transactions: 7},
		},
		"no run at all": {"pgbench: error: connection refused\n", Bench{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readPgbench(c.text); got != c.want {
				t.Errorf("readPgbench = %+v, want %+v", got, c.want)
			}
		})
	}
}
