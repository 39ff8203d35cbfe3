package running

import (
	"time"

	"toban.dev/internal/wal"
)

// lateness is for how long WAL waits on a standby between its receipt and its replay: who reads there sees data that is
// so old. No clock of another node counts. The zero value is ready.
type lateness struct {
	// waits is what has been received and not been replayed, the oldest first, with when it was seen to be there.
	waits []received
}

// received is how far the WAL reached at a time.
type received struct {
	end wal.LSN
	at  time.Time
}

// mostWaits bounds what is remembered: some minutes. Of more, the oldest stays.
const mostWaits = 1000

// see notes how far WAL was received and replayed at a time, and returns for how long the oldest has waited.
func (l *lateness) see(end, replayed wal.LSN, now time.Time) time.Duration {
	if n := len(l.waits); n > 0 && end < l.waits[n-1].end {
		l.waits = nil // another leader's WAL, which has less: what was received of the former one is not replayed
	}
	done := 0
	for done < len(l.waits) && l.waits[done].end <= replayed {
		done++
	}
	l.waits = l.waits[done:]
	last := replayed
	if n := len(l.waits); n > 0 {
		last = l.waits[n-1].end
	}
	if end > last && len(l.waits) < mostWaits {
		l.waits = append(l.waits, received{end, now})
	}
	if len(l.waits) == 0 {
		return 0
	}
	return now.Sub(l.waits[0].at)
}
