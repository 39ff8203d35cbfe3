package cluster

import (
	"net/http"
	"sync"
	"time"
)

// clock is what time it is by the API server, as its answers say: that of the machine of whoever asks may be wrong.
type clock struct {
	mutex sync.Mutex
	// date is what the last answer has said, seen when that was by a clock that nobody sets.
	date, seen time.Time
}

// Now is what time it is by the API server; where it has not answered yet, by this machine.
func (c *Cluster) Now() time.Time {
	if c.clock == nil {
		return time.Now()
	}
	c.clock.mutex.Lock()
	defer c.clock.mutex.Unlock()
	if c.clock.date.IsZero() {
		return time.Now()
	}
	return c.clock.date.Add(time.Since(c.clock.seen))
}

// through has the answers on a way set the clock.
func (c *clock) through(way http.RoundTripper) http.RoundTripper { return setting{way, c} }

type setting struct {
	http.RoundTripper
	clock *clock
}

func (s setting) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(request)
	if err == nil {
		if date, wrong := http.ParseTime(answer.Header.Get("Date")); wrong == nil {
			s.clock.mutex.Lock()
			s.clock.date, s.clock.seen = date, time.Now()
			s.clock.mutex.Unlock()
		}
	}
	return answer, err
}
