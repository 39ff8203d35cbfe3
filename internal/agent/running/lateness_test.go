package running

import (
	"testing"
	"time"

	"toban.dev/internal/wal"
)

func TestForHowLongWALWaits(t *testing.T) {
	var l lateness
	start := time.Now()
	for _, step := range []struct {
		after         time.Duration
		end, replayed wal.LSN
		want          time.Duration
	}{
		{0, 100, 100, 0},                             // all is replayed
		{time.Second, 200, 150, 0},                   // something comes
		{2 * time.Second, 300, 150, time.Second},     // and waits
		{3 * time.Second, 300, 199, 2 * time.Second}, // it is not yet whole
		{4 * time.Second, 400, 200, 2 * time.Second}, // what came a second later waits
		{5 * time.Second, 400, 350, time.Second},     // what came last
		{6 * time.Second, 400, 400, 0},               // none any more
		{time.Hour, 400, 400, 0},                     // nothing comes
		{time.Hour + time.Second, 500, 400, 0},       // the first after a long time has not waited yet
		{time.Hour + 2*time.Second, 500, 600, 0},     // more is replayed than was seen to come
		{time.Hour + 2*time.Second, 700, 600, 0},     // a piece of a record of a leader that dies
		{time.Hour + 2*time.Second, 650, 650, 0},     // and another leader, which has not got it
		{time.Hour + 3*time.Second, 0, 0, 0},         // a server that has just begun
		{time.Hour + 4*time.Second, 50, 0, 0},        // and has replayed nothing
		{time.Hour + 6*time.Second, 50, 0, 2e9},      // for two seconds
		{time.Hour + 7*time.Second, 1000, 1000, 0},   // then all
	} {
		if got := l.see(step.end, step.replayed, start.Add(step.after)); got != step.want {
			t.Errorf("after %s, %d of %d are replayed, and the oldest has waited %s, want %s",
				step.after, step.replayed, step.end, got, step.want)
		}
	}
	for i := range 3 * mostWaits {
		l.see(wal.LSN(2000+i), 1000, start.Add(2*time.Hour+time.Duration(i)*time.Second))
	}
	if len(l.waits) > mostWaits || l.waits[0].end != 2000 {
		t.Errorf("%d are remembered, from %d", len(l.waits), l.waits[0].end)
	}
}
