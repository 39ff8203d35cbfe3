package main

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func put(client int, value int64, start, end time.Duration, outcome Outcome) operation {
	return operation{client: client, write: true, value: value, start: start, end: end, outcome: outcome}
}

func get(client int, value int64, start, end time.Duration) operation {
	return operation{client: client, value: value, start: start, end: end, outcome: Acked}
}

func TestLinearizable(t *testing.T) {
	cases := map[string]struct {
		history []operation
		want    porcupine.CheckResult
	}{
		"nothing":              {nil, porcupine.Ok},
		"a write and its read": {[]operation{put(0, 7, 1, 2, Acked), get(1, 7, 3, 4)}, porcupine.Ok},
		"a stale read": {
			[]operation{put(0, 7, 1, 2, Acked), put(0, 8, 3, 4, Acked), get(1, 7, 5, 6)}, porcupine.Illegal,
		},
		"a lost write": {[]operation{put(0, 7, 1, 2, Acked), get(1, 0, 3, 4)}, porcupine.Illegal},
		"an unknown write seen later": {
			[]operation{put(0, 7, 1, 2, Unknown), get(1, 0, 3, 4), get(1, 7, 5, 6)}, porcupine.Ok,
		},
		"an unknown write seen and gone": {
			[]operation{put(0, 7, 1, 2, Unknown), get(1, 7, 3, 4), get(1, 0, 5, 6)}, porcupine.Illegal,
		},
		"a failed write that is read anyway": {
			[]operation{put(0, 7, 1, 2, Failed), get(1, 7, 3, 4)}, porcupine.Illegal,
		},
		"keys have nothing to do with each other": {
			[]operation{put(0, 7, 1, 2, Acked), {client: 1, key: 1, start: 3, end: 4, outcome: Acked}}, porcupine.Ok,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, _ := linearizable(c.history, time.Second); got != c.want {
				t.Errorf("linearizable = %s, want %s", got, c.want)
			}
		})
	}
}

// Unknown writes that nobody read must not make the search longer.
func TestManyUnknownWritesAreChecked(t *testing.T) {
	var history []operation
	for i := range 200 {
		history = append(history, put(i, int64(1000+i), 10, 20, Unknown))
	}
	for i := range 200 {
		at := time.Duration(30 + 4*i)
		history = append(history, put(0, int64(1+i), at, at+1, Acked), get(1, int64(1+i), at+2, at+3))
	}
	if got, _ := linearizable(history, 5*time.Second); got != porcupine.Ok {
		t.Errorf("linearizable = %s", got)
	}
}
