// Package stop decides about the stop of a database, and the start after it: who is sent away, what is proved before
// the Pods end, and what is waited for (docs/stop.md). All of it is pure. It knows no Kubernetes.
package stop

import (
	"fmt"
	"strings"
	"time"

	"toban.dev/internal/change/steps"
)

// The steps in their order, as the status has them. One that serves is in none.
const (
	Waiting  steps.Phase = "Waiting"
	Closing  steps.Phase = "Closing"
	Proving  steps.Phase = "Proving"
	Stopping steps.Phase = "Stopping"
	Stopped  steps.Phase = "Stopped"
	Starting steps.Phase = "Starting"
)

// The reasons of decisions about a stop (docs/stop.md).
const (
	WhyServes     steps.Why = "Serves"         // it is not to be stopped
	WhyBusy       steps.Why = "Busy"           // something is under way that a stop would cut off
	WhyHolds      steps.Why = "PoolersHold"    // it goes to sleep, and the poolers are told to hold their clients
	WhyNothing    steps.Why = "NothingRuns"    // there are no Pods, so nobody is to be sent away
	WhyNoData     steps.Why = "NoData"         // there is no database yet
	WhyBegins     steps.Why = "Begins"         // clients are sent away from now on
	WhyNoPrimary  steps.Why = "NoPrimary"      // nobody takes writes, and maybe somebody will
	WhyGivenUp    steps.Why = "NoPrimaryStays" // nobody has for too long: it stops without a proof
	WhySessions   steps.Why = "SessionsEnd"    // clients are told to end
	WhyUnended    steps.Why = "SessionsStay"   // they do not: it stops without a proof
	WhyClosed     steps.Why = "Closed"         // the last client has gone
	WhyReceiving  steps.Why = "Receiving"      // standbys or the archive lack something, and get on
	WhyIncomplete steps.Why = "Incomplete"     // they lack something, and do not get on
	WhyComplete   steps.Why = "Complete"       // they have all
	WhyAnother    steps.Why = "AnotherPrimary" // another one leads, or clients were let in: the end is another
	WhyPodsEnd    steps.Why = "PodsEnd"        // the servers stop
	WhyStopped    steps.Why = "Stopped"        // nothing runs
	WhyStarts     steps.Why = "Starts"         // the Pods start
	WhyElects     steps.Why = "Elects"         // no instance takes writes yet
	WhyStarted    steps.Why = "Started"        // one does

	WhyTakenBack  steps.Why = "TakenBack"       // before any Pod has ended
	WhyForDeleted steps.Why = "LastBackupTaken" // it starts for its last backup
)

// Patience is how long a stop waits for what may never come: a primary, a session that ends, a standby or an archive
// that gets on.
const Patience = time.Minute

// View is what a decision about a stop is made of.
type View struct {
	Now time.Time
	// Wanted says that it is to be stopped; Deleted that it is being deleted, and has to run for its last backup.
	Wanted, Deleted bool
	// Until is when it is started again by itself, zero for never.
	Until time.Time
	// Sleeps says that it is stopped because nobody uses it, Held that its poolers hold their clients.
	Sleeps, Held bool
	// Step is the present one, "" for none; Since is when it began, or what it waits for last got on.
	Step  steps.Phase
	Since time.Time
	// Busy is what is under way that a stop would cut off, "" for nothing.
	Busy string
	// Data says that there is a database, Pods how many Pods are left to end.
	Data bool
	Pods int
	// Primary takes writes, "" where none is known to. Closed says that it lets no client in and none is there any
	// more, AllClosed that nobody else would let one in either.
	Primary           string
	Closed, AllClosed bool
	// Proves names the primary whose end is being proved, and that end; End is that of the present one.
	Proves, Proved, End string
	// Behind are the instances that are not known to have all up to the end.
	Behind []string
	// Archived says that the archive has, or that there is none; Archive what is known of it.
	Archived bool
	Archive  string
}

// Decide says in which step a stop is, or the start after it.
func Decide(v View) steps.Decision {
	if !v.Wanted {
		return v.start()
	}
	return v.Steps().Decide(v.Step)
}

// Steps are those of a stop. One goes on to the next when nobody can write any more, whoever leads; when the standbys
// and the archive have all, or do not get on; and when no Pod is left.
func (v View) Steps() steps.Table {
	why, rests := v.rests()
	pods := []steps.Reason{
		{Is: v.Pods > 0, To: Stopping, Why: WhyPodsEnd, Says: fmt.Sprintf("%d Pods end", v.Pods)},
		{Is: true, To: Stopped, Why: why, Says: rests},
	}
	return steps.Table{Now: v.Now, Rows: []steps.Row{
		{Phase: Waiting, Waits: []steps.Reason{
			{Is: v.Busy != "", Why: WhyBusy, Says: "it is stopped when that has ended: " + v.Busy},
			{Is: v.Pods == 0, To: Stopped, Why: why, Says: rests},
			{Is: !v.Data, To: Stopping, Why: WhyNoData, Says: "there is no database yet; the Pods end"},
			{
				Is: v.Sleeps && !v.Held, Why: WhyHolds,
				Says: "it goes to sleep: its poolers are told to hold their clients",
			},
			{Is: true, To: Closing, Why: WhyBegins, Says: "no client is let in, and the sessions end"},
		}},
		{Phase: Closing, Kept: true, Heading: "clients are sent away", Writes: steps.WritesDown, Waits: v.close()},
		{
			Phase: Proving, Kept: true, Heading: "the archive gets the last WAL", Writes: steps.WritesDown,
			Waits: v.prove(),
		},
		{Phase: Stopping, Kept: true, Heading: "the Pods end", Writes: steps.WritesDown, Waits: pods},
		{Phase: Stopped, Kept: true, Writes: steps.WritesDown, Waits: pods},
	}}
}

// rests is what is said of a database without Pods, and why there are none.
func (v View) rests() (why steps.Why, says string) {
	switch {
	case !v.Data:
		return WhyNothing, "the database is made when it is started" + v.untilWhen(", at ")
	case v.Sleeps:
		return WhyStopped, "the database sleeps, because nobody used it: a client of its pooler wakes it"
	}
	return WhyStopped, "the database is stopped" + v.untilWhen(" until ")
}

// close are the reasons while clients are sent away.
func (v View) close() []steps.Reason {
	return []steps.Reason{
		{Is: v.AllClosed, To: Proving, Why: WhyClosed, Says: "the last client has gone"},
		{
			Is: !v.late() && v.Primary == "", Why: WhyNoPrimary,
			Says: "waits for a primary, to send its clients away",
		},
		{Is: !v.late(), Why: WhySessions, Says: "the sessions of clients end"},
		{Is: v.Primary == "", To: Stopping, Why: WhyGivenUp, Says: "the Pods end: no instance takes writes"},
		{
			Is: v.Closed, To: Proving, Why: WhyClosed,
			Says: "the last client has gone from the primary " + v.Primary,
		},
		{
			Is: true, To: Stopping, Why: WhyUnended,
			Says: "the Pods end: not every session of a client at " + v.Primary + " has ended",
		},
	}
}

// prove are the reasons while it is found out who has all.
func (v View) prove() []steps.Reason {
	var lacking []string
	if !v.Archived {
		lacking = append(lacking, v.Archive)
	}
	if len(v.Behind) > 0 {
		lacking = append(lacking, "not all WAL is known to be on "+strings.Join(v.Behind, ", "))
	}
	all := strings.Join(lacking, "; ")
	another := v.Proved != "" && (v.Primary != v.Proves || v.End != v.Proved)
	return []steps.Reason{
		{
			Is: v.Primary != "" && (!v.Closed || another), To: Closing, Why: WhyAnother,
			Says: "the sessions of clients at " + v.Primary + " end",
		},
		{Is: len(lacking) == 0 && v.Primary != "", To: Stopping, Why: WhyComplete, Says: "the Pods end"},
		{Is: v.late(), To: Stopping, Why: WhyIncomplete, Says: "the Pods end: " + all},
		{Is: v.Primary == "", Why: WhyNoPrimary, Says: "waits for a primary, to learn what the archive has"},
		{Is: true, Why: WhyReceiving, Says: all},
	}
}

// start is the way back: nothing is left of a stop that has not ended Pods, and else they start.
func (v View) start() steps.Decision {
	switch v.Step {
	case Stopping, Stopped:
		if v.Deleted {
			return steps.Decision{Phase: Starting, Why: WhyForDeleted, Says: "the instances start for the last backup"}
		}
		return steps.Decision{Phase: Starting, Why: WhyStarts, Says: "the instances start"}
	case Starting:
		if v.Primary == "" {
			return steps.Decision{Phase: Starting, Why: WhyElects, Says: "no instance takes writes yet"}
		}
		return steps.Decision{Why: WhyStarted, Says: v.Primary + " takes writes"}
	case "":
		return steps.Decision{Why: WhyServes}
	}
	return steps.Decision{Why: WhyTakenBack, Says: "the stop is taken back"}
}

// untilWhen says when it is started again by itself, "" where it is not.
func (v View) untilWhen(words string) string {
	if v.Until.IsZero() {
		return ""
	}
	return words + v.Until.UTC().Format(time.RFC3339)
}

func (v View) late() bool { return v.Now.Sub(v.Since) > Patience }
