package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"toban.dev/internal/change/space"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// gaugeInterval is how often it is looked how full the volume is, lately over how many looks what it has filled
	// lately is told.
	gaugeInterval = 10 * time.Second
	lately        = 6
	// gaugeUnit is what that is told in, so that the status does not change for nothing. What is used is rounded up: a
	// volume that a RoomWatch calls short is short by what is told, too.
	gaugeUnit = 1 << 20
	// fillingFile is where the samples are, in the state folder. It is no part of what the agent has promised.
	fillingFile = "filling.json"
)

// Gauge looks how full a volume is, and remembers on the volume how that was in the last week.
type Gauge struct {
	path    string
	tell    func(protocol.Room)
	log     *slog.Logger
	measure func() (size, used int64, err error)
	// filled is how much of it a FaultDrill has filled.
	filled func() int64
	now    func() time.Time

	poke    chan struct{}
	samples []space.Sample
	recent  []int64 // what was used at the last looks
	told    protocol.Room
	failed  string
}

// NewGauge is that of a volume. tell is told what it sees when that has changed.
func NewGauge(volume string, tell func(protocol.Room), log *slog.Logger) *Gauge {
	return &Gauge{
		path: filepath.Join(StateFolder(volume), fillingFile), tell: tell, log: log,
		measure: newMeter(volume).used, filled: func() int64 { return filled(volume) }, now: time.Now,
		poke: make(chan struct{}, 1),
	}
}

// LookNow has it look at once.
func (g *Gauge) LookNow() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Run looks now and then, until ctx ends.
func (g *Gauge) Run(ctx context.Context) error {
	return LookEvery(ctx, func() time.Duration {
		g.look()
		return gaugeInterval
	}, g.poke)
}

// look looks once. What a FaultDrill has filled is nobody's need: volumes do not grow for it. It may change during
// the look: none of it counts then.
func (g *Gauge) look() {
	drill := g.filled()
	size, used, err := g.measure()
	if err != nil {
		g.complain(err)
		return
	}
	if g.samples == nil {
		g.samples = g.read()
	}
	drill = max(drill, g.filled())
	own := max(used-drill, 0)
	if err := g.note(space.Sample{At: g.now().UTC().Truncate(time.Second), Used: own}); err != nil {
		g.complain(err)
	} else {
		g.failed = ""
	}
	if g.recent = append(g.recent, own); len(g.recent) > lately+1 {
		g.recent = g.recent[1:]
	}
	g.say(protocol.Room{Size: size, Used: used, Drill: drill, Lately: max(own-g.recent[0], 0)})
}

// say tells what was seen, with the rate, where that is something new.
func (g *Gauge) say(seen protocol.Room) {
	seen.Used += (gaugeUnit - seen.Used%gaugeUnit) % gaugeUnit
	seen.Lately -= seen.Lately % gaugeUnit
	if perDay, over, known := space.Rate(g.samples); known {
		seen.PerDay, seen.Over = &perDay, over
	}
	if same(seen, g.told) {
		return
	}
	g.told = seen
	g.tell(seen)
}

func same(a, b protocol.Room) bool {
	rate := a.PerDay == b.PerDay || a.PerDay != nil && b.PerDay != nil && *a.PerDay == *b.PerDay
	a.PerDay, b.PerDay = nil, nil
	return rate && a == b
}

// note remembers a sample where one is due, or where the clock says that the last one is yet to come.
func (g *Gauge) note(now space.Sample) error {
	if n := len(g.samples); n > 0 {
		if age := now.At.Sub(g.samples[n-1].At); age >= 0 && age < space.SampleInterval {
			return nil
		}
	}
	g.samples = space.Add(g.samples, now)
	text, err := json.Marshal(g.samples)
	if err != nil {
		return fmt.Errorf("remember how full the volume is: %w", err)
	}
	if err := postgres.WriteFile(g.path, text, 0o600); err != nil {
		return fmt.Errorf("remember how full the volume is: %w", err)
	}
	return nil
}

// read are the samples on the volume. What can't be read is not known.
func (g *Gauge) read() []space.Sample {
	samples := []space.Sample{}
	text, err := os.ReadFile(g.path)
	if err == nil {
		err = json.Unmarshal(text, &samples)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			g.log.Warn("how full the volume was is forgotten", "error", err.Error())
		}
		return []space.Sample{}
	}
	return samples
}

// complain logs an error, once for as long as it stays the same.
func (g *Gauge) complain(err error) {
	if g.failed != err.Error() {
		g.failed = err.Error()
		g.log.Warn("the room on the volume is not known, or not remembered", "error", err.Error())
	}
}

// fillFile is what a FaultDrill fills a volume with, in the state folder.
const fillFile = "faultdrill"

// FillPath is the file with which a FaultDrill fills a volume.
func FillPath(volume string) string { return filepath.Join(StateFolder(volume), fillFile) }

// filled is how much a FaultDrill has filled of a volume, in bytes.
func filled(volume string) int64 {
	file, err := os.Stat(FillPath(volume))
	if err != nil {
		return 0
	}
	return file.Size()
}
