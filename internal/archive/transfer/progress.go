package transfer

import (
	"sync"
	"time"
)

// Progress is how far a backup or a restore is.
type Progress struct {
	// Done and Total are in bytes, before compression. Total is an estimate, 0 where there is none.
	Done, Total int64
	// Rate is in bytes per second, since the beginning.
	Rate float64
}

// progressInterval is how often progress is reported at most.
const progressInterval = 200 * time.Millisecond

// Meter counts bytes and reports them. It may be used by several at once.
type Meter struct {
	mutex       sync.Mutex
	report      func(Progress)
	begin, last time.Time
	done, total int64
}

// NewMeter makes one for so many bytes, 0 where that is not known.
func NewMeter(report func(Progress), total int64) *Meter {
	return &Meter{report: report, begin: time.Now(), total: total}
}

// Add counts n bytes more.
func (m *Meter) Add(n int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.done += int64(n)
	if now := time.Now(); now.Sub(m.last) >= progressInterval {
		m.reportProgress(now)
	}
}

// End reports the last state.
func (m *Meter) End() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.reportProgress(time.Now())
}

func (m *Meter) reportProgress(now time.Time) {
	m.last = now
	if m.report == nil {
		return
	}
	p := Progress{Done: m.done, Total: m.total}
	if elapsed := now.Sub(m.begin).Seconds(); elapsed > 0 {
		p.Rate = float64(m.done) / elapsed
	}
	m.report(p)
}
