package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Run is what came of one fault. Times are in seconds.
type Run struct {
	Fault string `json:"fault"`
	// Shape is that of the database; without one it is the usual.
	Shape string `json:"shape,omitempty"`
	Round int    `json:"round"`
	// Pause is how long after the first fault of a soak's round the second struck, in seconds.
	Pause float64   `json:"pause,omitempty"`
	At    time.Time `json:"at"`
	// Service and Multi are the longest time without an acknowledged write after the
	// fault, through the Service and with a list of hosts.
	Service float64 `json:"service"`
	Multi   float64 `json:"multi"`
	// Pooler and Label are the same by the third way of a shape (PathPooler, PathLabel).
	Pooler float64 `json:"pooler,omitempty"`
	Label  float64 `json:"label,omitempty"`
	// ByItself says that writes came again before the fault was healed.
	ByItself bool `json:"byItself"`
	// Whole is the time from the healing, or from the fault where there was nothing to
	// heal, until all instances streamed again and the SampleDB was Ready.
	Whole float64 `json:"whole"`
	// Acked is the number of acknowledged writes, Lost how many of them were not
	// there in the end; LostIDs are the first of these.
	Acked   int     `json:"acked"`
	Lost    int     `json:"lost"`
	LostIDs []int64 `json:"lostIDs,omitempty"`
	// Overlap is the number of writes that an older primary acknowledged although they
	// began after a newer one's first acknowledgement, and OverlapFor how long after.
	Overlap    int     `json:"overlap"`
	OverlapFor float64 `json:"overlapFor"`
	// TwoPrimaries is how long two instances said that they are not in recovery.
	TwoPrimaries float64 `json:"twoPrimaries"`
	// Changes is how often the primary changed, Needless how many of these are more
	// than the fault allows, and Missing how many less.
	Changes  int `json:"changes"`
	Needless int `json:"needless"`
	Missing  int `json:"missing"`
	// Operations is the number of reads and writes of the registers; Linearizable is
	// what porcupine says of them: Ok, Illegal, or Unknown when its time was over. It is
	// empty where the round was not made.
	Operations   int    `json:"operations"`
	Linearizable string `json:"linearizable"`
	// Stages are when each part of the way back was seen.
	Stages Stages `json:"stages"`
	// Unknown is the number of writes of which nobody knows whether they happened.
	Unknown  int      `json:"unknown"`
	Problems []string `json:"problems,omitempty"`
	// Notes are what is worth knowing of the round, and nothing wrong.
	Notes []string `json:"notes,omitempty"`
}

// Stages are those of breakDown in seconds.
type Stages struct {
	Writable float64 `json:"writable"`
	Multi    float64 `json:"multi"`
	Slice    float64 `json:"slice"`
	Service  float64 `json:"service"`
}

// third is the longest time without an acknowledged write by the third way, and which way that is, "" for none.
func (r Run) third() (float64, Path) {
	switch {
	case r.Pooler > 0:
		return r.Pooler, PathPooler
	case r.Label > 0:
		return r.Label, PathLabel
	}
	return 0, ""
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// judge measures a history between the fault and the end.
func (r *Run) judge(c *clients, f fault, t0, end time.Duration) {
	service, multi := c.acks(PathService), c.acks(PathMulti)
	all := c.acks(allPaths...)
	r.Service, r.Multi = seconds(longestGap(service, t0, end).length()), seconds(longestGap(multi, t0, end).length())
	for path, longest := range map[Path]*float64{PathPooler: &r.Pooler, PathLabel: &r.Label} {
		if acks := c.acks(path); len(acks) > 0 {
			*longest = seconds(longestGap(acks, t0, end).length())
		}
	}
	count, length := overlap(all)
	r.Overlap, r.OverlapFor = count, seconds(length)
	r.TwoPrimaries = seconds(twoPrimaries(c.sights))
	r.Changes = max(0, len(leaders(c.sights, all))-1)
	r.Needless, r.Missing = max(0, r.Changes-f.most), max(0, f.least-r.Changes)
	s := breakDown(evidence{c.sights, c.routes, multi, service}, t0, end)
	r.Stages = Stages{seconds(s.Writable), seconds(s.Multi), seconds(s.Slice), seconds(s.Service)}
	for _, w := range c.writes {
		if w.outcome == Unknown {
			r.Unknown++
		}
	}
	r.Problems = append(r.Problems, r.tooLong(f)...)
}

// wrongs are what must never be, whatever the fault. Where the shape may lose
// acknowledged writes, that is counted, and is not wrong.
func (r Run) wrongs() []string {
	wrongs := append([]string{}, r.Problems...)
	if s, err := shapeNamed(r.Shape); err != nil || s.mayLose {
		return wrongs
	}
	if r.Lost > 0 {
		wrongs = append(wrongs, fmt.Sprintf("%d of %d acknowledged writes are lost: %v …", r.Lost, r.Acked, r.LostIDs))
	}
	if r.Overlap > 0 {
		wrongs = append(wrongs,
			fmt.Sprintf("an older primary acknowledged %d writes, up to %.3f s after a newer one's first",
				r.Overlap, r.OverlapFor))
	}
	if r.Linearizable == string(porcupine.Illegal) {
		wrongs = append(wrongs, fmt.Sprintf("the history is not linearizable (%q)", r.Linearizable))
	}
	return wrongs
}

// tell says what came of a run.
func (d *drill) tell(r Run) {
	d.say("%s: no writes for %.2f s (Service) and %.2f s (multi-host), by itself %t; whole after %.1f s",
		r.Fault, r.Service, r.Multi, r.ByItself, r.Whole)
	if third, path := r.third(); path != "" {
		d.say("  no writes for %.2f s (%s)", third, path)
	}
	d.say("  lost %d of %d; overlap %d; primary changes %d, needless %d, missing %d; %d operations %s; "+
		"unknown writes %d; two primaries %.2f s", r.Lost, r.Acked, r.Overlap, r.Changes, r.Needless, r.Missing,
		r.Operations, r.Linearizable, r.Unknown, r.TwoPrimaries)
	d.say("  since the fault: writable %.2f, multi-host %.2f, EndpointSlice %.2f, Service %.2f",
		r.Stages.Writable, r.Stages.Multi, r.Stages.Slice, r.Stages.Service)
	for _, p := range slices.Concat(r.Notes, r.Problems) {
		d.say("  %s", p)
	}
}

func writeRuns(file string, runs []Run) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return fmt.Errorf("write the runs: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func readRuns(file string) ([]Run, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	var runs []Run
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("understand %s: %w", file, err)
	}
	return runs, nil
}
