package faultdrill

import (
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// Verdict is what came of a drill.
type Verdict struct {
	Passed  bool
	Reason  string
	Message string
	// Outage is the longest time without an acknowledged write of any client.
	Outage       time.Duration
	Acknowledged int64
	Lost         int64
}

// judge compares what the clients have seen with the objectives. That nothing is lost counts most.
func judge(v view) Verdict {
	var out Verdict
	for _, c := range v.result.Clients {
		out.Outage = max(out.Outage, c.Outage)
		out.Acknowledged += c.Acknowledged
		out.Lost += c.Lost
	}
	out.Message = fmt.Sprintf("%slongest outage %s (%s; allowed: %s); %d writes acknowledged, %s lost; %s",
		oldest(v.result.Clients), short(out.Outage), ways(v.result.Clients), v.objectives.MaxOutage.Duration,
		out.Acknowledged, none(out.Lost), v.again(out.Outage))
	switch {
	case out.Lost > 0:
		out.Reason = v1.ReasonWritesLost
	case v.result.ByQuery:
		out.Reason = v1.ReasonAbortedByQuery
		out.Message = "given up, because the query of spec.abortWhen said so; " + out.Message
	case v.result.Aborted:
		out.Reason = v1.ReasonOutageTooLong
		out.Message = fmt.Sprintf("given up after %s without a write (spec.abortAfter); %s", v.abortAfter, out.Message)
	case out.Outage > v.objectives.MaxOutage.Duration:
		out.Reason = v1.ReasonOutageTooLong
	case v.wholeSince.IsZero() || v.wholeAfter(out.Outage) > v.objectives.WholeWithin.Duration:
		out.Reason = v1.ReasonNotWholeInTime
	default:
		out.Passed, out.Reason = true, v1.ReasonObjectivesMet
	}
	return out
}

// wholeAfter is how long after the fault the SampleDB was whole again: not before its clients could write, though its
// conditions may not have said for so long that they can't.
func (v view) wholeAfter(outage time.Duration) time.Duration {
	return max(v.wholeSince.Sub(v.struck), outage)
}

// again says when the SampleDB was whole again.
func (v view) again(outage time.Duration) string {
	if v.wholeSince.IsZero() {
		return fmt.Sprintf("not Ready and Durable again%s after %s", v.besides, v.objectives.WholeWithin.Duration)
	}
	return fmt.Sprintf("Ready and Durable again%s after %s", v.besides, v.wholeAfter(outage).Round(time.Second))
}

// ways are the outages by how the clients connect.
func ways(clients []protocol.DrillClient) string {
	var out []string
	for _, c := range clients {
		if c.Acknowledged > 0 { // others only read
			out = append(out, c.Way+" "+short(c.Outage))
		}
	}
	return strings.Join(out, ", ")
}

// oldest says how old what was read from standbys was, where somebody has looked.
func oldest(clients []protocol.DrillClient) string {
	for _, c := range clients {
		if c.Staleness > 0 {
			return fmt.Sprintf("standbys answered up to %s late; ", short(c.Staleness))
		}
	}
	return ""
}

// short is a time in hundredths of a second: the clients write every 20 ms.
func short(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

func none(n int64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
