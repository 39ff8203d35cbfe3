package main

import (
	"testing"
	"time"
)

func TestTheLongestGapIsBetweenTheClients(t *testing.T) {
	begin := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	at := func(client int, after time.Duration) ack { return ack{client: client, at: begin.Add(after)} }
	for name, c := range map[string]struct {
		acks []ack
		gap  time.Duration
		from time.Duration
	}{
		"nobody writes": {nil, 0, 0},
		"another client writes in between": {
			[]ack{at(1, 0), at(2, time.Second), at(1, 3*time.Second), at(2, 4*time.Second)},
			2 * time.Second, time.Second,
		},
	} {
		gap, from := longestGap(c.acks)
		if gap != c.gap || c.gap > 0 && !from.Equal(begin.Add(c.from)) {
			t.Errorf("%s: the gap is %v from %v, want %v from %v", name, gap, from, c.gap, c.from)
		}
	}
}
