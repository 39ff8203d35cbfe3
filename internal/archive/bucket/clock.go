package bucket

import (
	"net/http"
	"sync"
	"time"
)

// Clock is what time it is by a store, as its answers say (Date, RFC 9110, 6.6.1). It is for who must not believe the
// clock of its own machine alone, and goes on while a store is full, because a store answers then too. The zero value
// is one that nobody has set yet.
type Clock struct {
	mutex sync.Mutex
	// date is what the last answer has said, seen when that was by a clock that nobody sets.
	date, seen time.Time
}

// Now is what time it is by the store, zero where it has not said so. A folder never does: it has no clock but that of
// its machine.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.date.IsZero() {
		return time.Time{}
	}
	return c.date.Add(time.Since(c.seen))
}

// Set sets the clock.
func (c *Clock) Set(date time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.date, c.seen = date, time.Now()
}

// through has the answers on a way set the clock; a nil one changes nothing.
func (c *Clock) through(way http.RoundTripper) http.RoundTripper {
	if c == nil {
		return way
	}
	return setting{way, c}
}

type setting struct {
	http.RoundTripper
	clock *Clock
}

func (s setting) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(request)
	// What something between says of an error has the time of that.
	if err == nil && answer.StatusCode < http.StatusInternalServerError {
		if date, wrong := http.ParseTime(answer.Header.Get("Date")); wrong == nil {
			s.clock.Set(date)
		}
	}
	return answer, err
}
