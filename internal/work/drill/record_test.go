package drill

import (
	"errors"
	"testing"
	"time"
)

// at is a moment, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(1_800_000_000_000 + int64(ms)) }

func TestTheLongestGapCountsFromTheBeginningOn(t *testing.T) {
	var r record
	r.ack(1, at(0))
	r.ack(2, at(5000)) // before the time counts
	r.fail(errors.New("before"), at(5001))
	r.begin(at(5100))
	r.ack(3, at(5200))
	r.fail(errors.New("first"), at(5300))
	r.fail(errors.New("second"), at(6000))
	r.ack(4, at(6400))
	r.ack(5, at(6500))
	if r.outage != 1200*time.Millisecond || r.errors != 2 || r.firstError != "first" || len(r.acknowledged) != 5 {
		t.Errorf("it has seen %+v", r)
	}
	if got := r.end(at(6600)); got != 1200*time.Millisecond {
		t.Errorf("the longest is %s", got)
	}
	if got := r.end(at(9000)); got != 2500*time.Millisecond {
		t.Errorf("with the one that has not ended it is %s", got)
	}
}

// What began before the time counts, and ends in it, is an outage in it.
func TestAGapOverTheBeginningCounts(t *testing.T) {
	var r record
	r.ack(1, at(0))
	r.begin(at(900))
	r.ack(2, at(1500))
	if r.outage != 1500*time.Millisecond {
		t.Errorf("the outage is %s", r.outage)
	}
}

func TestWhoIsSteady(t *testing.T) {
	for name, c := range map[string]struct {
		record record
		first  time.Time
		want   bool
	}{
		"nothing written":       {record{}, time.Time{}, false},
		"written for long":      {record{last: at(9900)}, at(0), true},
		"not for long enough":   {record{last: at(9900)}, at(8000), false},
		"an error a moment ago": {record{last: at(9900), failed: at(8000)}, at(0), false},
		"an error before":       {record{last: at(9900), failed: at(100)}, at(0), true},
		"not any more":          {record{last: at(8000)}, at(0), false},
	} {
		if got := c.record.steady(at(10000), c.first, 3*time.Second); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A read is stale that lacks what was acknowledged before it began; what is newer it may have.
func TestWhichReadsAreStale(t *testing.T) {
	var r record
	if r.newest() != 0 {
		t.Error("there is a write")
	}
	r.ack(1, at(0))
	r.ack(3, at(20)) // 2 has failed
	r.read(1, r.newest())
	r.begin(at(30))
	for answer, stale := range map[int64]int64{1: 1, 2: 1, 3: 0, 4: 0} {
		before := r.stale
		r.read(answer, r.newest())
		if r.stale-before != stale {
			t.Errorf("the answer %d: %d stale", answer, r.stale-before)
		}
	}
	if r.reads != 4 {
		t.Errorf("%d reads count", r.reads)
	}
}

func TestWhatIsLost(t *testing.T) {
	r := record{acknowledged: []int64{1, 2, 5, 6}}
	if got := r.lost([]int64{1, 2, 3, 6}); got != 1 { // 3 was not acknowledged, and may be there
		t.Errorf("%d are lost", got)
	}
	if got := r.lost([]int64{6, 5, 2, 1}); got != 0 {
		t.Errorf("%d are lost", got)
	}
}

// An answer is as old as the first write that it lacks, of those that were acknowledged before it was asked for.
func TestHowOldAnAnswerIs(t *testing.T) {
	var r record
	r.ack(1, at(100))
	r.ack(2, at(200))
	r.ack(5, at(500)) // 3 and 4 have failed
	for name, c := range map[string]struct {
		newest int64
		asked  int
		want   time.Duration
	}{
		"it has all":                           {5, 900, 0},
		"it has more than is acknowledged":     {6, 900, 0},
		"it lacks the last":                    {2, 900, 400 * time.Millisecond},
		"it has one that failed for its asker": {4, 900, 400 * time.Millisecond},
		"it lacks all":                         {0, 900, 800 * time.Millisecond},
		"the one it lacks came meanwhile":      {2, 450, 0},
	} {
		if got := r.age(c.newest, at(c.asked)); got != c.want {
			t.Errorf("%s: it is %s old, want %s", name, got, c.want)
		}
	}
}
