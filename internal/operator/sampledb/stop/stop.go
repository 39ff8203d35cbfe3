package stop

import (
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
)

// The reasons of decisions about a stop (docs/stop.md).
const (
	stopServes     = "Serves"         // it is not to be stopped
	stopBusy       = "Busy"           // something is under way that a stop would cut off
	stopHolds      = "PoolersHold"    // it goes to sleep, and the poolers are told to hold their clients
	stopNothing    = "NothingRuns"    // there are no Pods, so nobody is to be sent away
	stopNoData     = "NoData"         // there is no database yet
	stopBegins     = "Begins"         // clients are sent away from now on
	stopNoPrimary  = "NoPrimary"      // nobody takes writes, and maybe somebody will
	stopGivenUp    = "NoPrimaryStays" // nobody has for too long: it stops without a proof
	stopSessions   = "SessionsEnd"    // clients are told to end
	stopUnended    = "SessionsStay"   // they do not: it stops without a proof
	stopClosed     = "Closed"         // the last client has gone
	stopReceiving  = "Receiving"      // standbys or the archive lack something, and get on
	stopIncomplete = "Incomplete"     // they lack something, and do not get on
	stopComplete   = "Complete"       // they have all
	stopAnother    = "AnotherPrimary" // another one leads, or clients were let in: the end is not that any more
	stopPodsEnd    = "PodsEnd"        // the servers stop
	stopStopped    = "Stopped"        // nothing runs
	stopStarts     = "Starts"         // the Pods start
	stopElects     = "Elects"         // no instance takes writes yet
	stopStarted    = "Started"        // one does

	stopTakenBack  = "TakenBack"       // before any Pod has ended
	stopForDeleted = "LastBackupTaken" // it starts for its last backup
)

// stopPatience is how long a stop waits for what may never come: a primary, a session that ends, a standby or an
// archive that gets on.
const stopPatience = time.Minute

// stopView is what a decision about a stop is made of.
type stopView struct {
	now time.Time
	// wanted says that it is to be stopped; deleted that it is being deleted, and has to run for its last backup.
	wanted, deleted bool
	// until is when it is started again by itself, zero for never.
	until time.Time
	// sleeps says that it is stopped because nobody uses it, held that its poolers hold their clients.
	sleeps, held bool
	// step is the present one, "" for none; since is when it began, or what it waits for last got on.
	step  string
	since time.Time
	// busy is what is under way that a stop would cut off, "" for nothing.
	busy string
	// data says that there is a database, pods how many Pods are left to end.
	data bool
	pods int
	// primary takes writes, "" where none is known to. closed says that it lets no client in and none is there any
	// more, AllClosed that nobody else would let one in either.
	primary           string
	closed, allClosed bool
	// proves names the primary whose end is being proved, and that end; end is that of the present one.
	proves, proved, end string
	// behind are the instances that are not known to have all up to the end.
	behind []string
	// archived says that the archive has, or that there is none; archive what is known of it.
	archived bool
	archive  string
}

// stopDecision is the step of a stop, and what is to be said about it.
type stopDecision struct {
	step    string // "" for none: it serves
	reason  string
	message string
}

// decideStop says in which step a stop is, or the start after it.
func decideStop(v stopView) stopDecision {
	if !v.wanted {
		return v.start()
	}
	switch v.step {
	case v1.StopStopping, v1.StopStopped:
		return v.stopped()
	case v1.StopClosing:
		return v.close()
	case v1.StopProving:
		return v.prove()
	}
	switch {
	case v.busy != "":
		return stopDecision{v1.StopWaiting, stopBusy, "it is stopped when that has ended: " + v.busy}
	case v.pods == 0:
		return v.stopped()
	case !v.data:
		return stopDecision{v1.StopStopping, stopNoData, "there is no database yet; the Pods end"}
	case v.sleeps && !v.held:
		return stopDecision{v1.StopWaiting, stopHolds, "it goes to sleep: its poolers are told to hold their clients"}
	}
	return stopDecision{v1.StopClosing, stopBegins, "no client is let in, and the sessions end"}
}

// stopped is about the Pods.
func (v stopView) stopped() stopDecision {
	if v.pods > 0 {
		return stopDecision{v1.StopStopping, stopPodsEnd, fmt.Sprintf("%d Pods end", v.pods)}
	}
	if !v.data {
		return stopDecision{v1.StopStopped, stopNothing,
			"the database is made when it is started" + v.untilWhen(", at ")}
	}
	if v.sleeps {
		return stopDecision{v1.StopStopped, stopStopped,
			"the database sleeps, because nobody used it: a client of its pooler wakes it"}
	}
	return stopDecision{v1.StopStopped, stopStopped, "the database is stopped" + v.untilWhen(" until ")}
}

// close goes on when nobody can write any more, whoever leads.
func (v stopView) close() stopDecision {
	switch {
	case v.allClosed:
		return stopDecision{v1.StopProving, stopClosed, "the last client has gone"}
	case !v.late() && v.primary == "":
		return stopDecision{v1.StopClosing, stopNoPrimary, "waits for a primary, to send its clients away"}
	case !v.late():
		return stopDecision{v1.StopClosing, stopSessions, "the sessions of clients end"}
	case v.primary == "":
		return stopDecision{v1.StopStopping, stopGivenUp, "the Pods end: no instance takes writes"}
	case v.closed:
		return stopDecision{v1.StopProving, stopClosed, "the last client has gone from the primary " + v.primary}
	}
	return stopDecision{v1.StopStopping, stopUnended, "the Pods end: not every session of a client at " + v.primary +
		" has ended"}
}

// prove goes on when the standbys and the archive have all, or do not get on.
func (v stopView) prove() stopDecision {
	var lacking []string
	if !v.archived {
		lacking = append(lacking, v.archive)
	}
	if len(v.behind) > 0 {
		lacking = append(lacking, "not all WAL is known to be on "+strings.Join(v.behind, ", "))
	}
	switch {
	case v.primary != "" && (!v.closed || v.proved != "" && (v.primary != v.proves || v.end != v.proved)):
		return stopDecision{v1.StopClosing, stopAnother, "the sessions of clients at " + v.primary + " end"}
	case len(lacking) == 0 && v.primary != "":
		return stopDecision{v1.StopStopping, stopComplete, "the Pods end"}
	case v.late():
		return stopDecision{v1.StopStopping, stopIncomplete, "the Pods end: " + strings.Join(lacking, "; ")}
	case v.primary == "":
		return stopDecision{v1.StopProving, stopNoPrimary, "waits for a primary, to learn what the archive has"}
	}
	return stopDecision{v1.StopProving, stopReceiving, strings.Join(lacking, "; ")}
}

// start is the way back.
func (v stopView) start() stopDecision {
	switch v.step {
	case v1.StopStopping, v1.StopStopped:
		if v.deleted {
			return stopDecision{v1.StopStarting, stopForDeleted, "the instances start for the last backup"}
		}
		return stopDecision{v1.StopStarting, stopStarts, "the instances start"}
	case v1.StopStarting:
		if v.primary == "" {
			return stopDecision{v1.StopStarting, stopElects, "no instance takes writes yet"}
		}
		return stopDecision{"", stopStarted, v.primary + " takes writes"}
	case "":
		return stopDecision{"", stopServes, ""}
	}
	return stopDecision{"", stopTakenBack, "the stop is taken back"}
}

// untilWhen says when it is started again by itself, "" where it is not.
func (v stopView) untilWhen(words string) string {
	if v.until.IsZero() {
		return ""
	}
	return words + v.until.UTC().Format(time.RFC3339)
}

func (v stopView) late() bool { return v.now.Sub(v.since) > stopPatience }
