package volume

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/change/space"
	"toban.dev/internal/protocol"
)

// gauged is a gauge of a volume that a test fills.
type gauged struct {
	*Gauge
	used  int64
	fails error
	at    time.Time
	told  []protocol.Room
}

func newGauged(t *testing.T, volume string) *gauged {
	t.Helper()
	g := &gauged{at: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), used: 1 << 30}
	g.Gauge = NewGauge(volume, func(r protocol.Room) { g.told = append(g.told, r) }, slog.New(slog.DiscardHandler))
	g.measure = func() (int64, int64, error) { return 10 << 30, g.used, g.fails }
	g.now = func() time.Time { return g.at }
	return g
}

// pass looks for so long, while the volume fills by so much a minute.
func (g *gauged) pass(long time.Duration, perMinute int64) {
	for range long / gaugeInterval {
		g.used += perMinute / lately
		g.look()
		g.at = g.at.Add(gaugeInterval)
	}
}

func (g *gauged) last() protocol.Room { return g.told[len(g.told)-1] }

func emptyVolume(t *testing.T) string {
	t.Helper()
	volume := t.TempDir()
	if err := os.Mkdir(StateFolder(volume), 0o700); err != nil {
		t.Fatal(err)
	}
	return volume
}

// The rate is known after some hours, and another agent on the volume goes on with what was measured.
func TestTheRateSurvivesARestart(t *testing.T) {
	volume := emptyVolume(t)
	first := newGauged(t, volume)
	first.pass(2*time.Hour, 1<<20)
	if first.last().PerDay != nil {
		t.Errorf("after two hours it is %d", *first.last().PerDay)
	}
	first.pass(10*time.Hour, 1<<20)
	second := newGauged(t, volume)
	second.used, second.at = first.used, first.at
	second.pass(time.Minute, 0)
	got := second.last()
	if got.PerDay == nil || *got.PerDay < 1435<<20 || *got.PerDay > 1445<<20 || got.Over < 10*time.Hour {
		t.Errorf("another agent knows %+v", got)
	}
	if got.Size != 10<<30 || got.Used != (second.used+1<<20-1)>>20<<20 {
		t.Errorf("it says %d of %d, want %d", got.Used, got.Size, second.used)
	}
}

// A volume that is short by a byte is short by what is told: nobody would look at it again before the next round.
func TestTheRoomThatIsToldIsNotMoreThanThereIs(t *testing.T) {
	g := newGauged(t, emptyVolume(t))
	bounds := space.BoundsOf(10 << 30)
	g.used = 10<<30 - bounds.Short + 1
	g.look()
	if told := g.last(); !bounds.IsShort(told.Size-told.Used, false) {
		t.Errorf("%d are told to be free, which is not short", told.Size-told.Used)
	}
}

// Files that can't be understood, or that can't be written, cost the history and nothing else.
func TestWithoutAMemoryTheRoomIsStillTold(t *testing.T) {
	volume := emptyVolume(t)
	g := newGauged(t, volume)
	if err := os.WriteFile(g.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.pass(time.Minute, 0)
	if err := os.RemoveAll(StateFolder(volume)); err != nil {
		t.Fatal(err)
	}
	g.pass(5*time.Hour, 1<<20)
	if got := g.last(); got.Used == 0 || got.PerDay == nil {
		t.Errorf("it says %+v", got)
	}
}

func TestWhatHasNotChangedIsNotToldAgain(t *testing.T) {
	g := newGauged(t, emptyVolume(t))
	g.pass(time.Hour, 0)
	if len(g.told) != 1 {
		t.Errorf("it was told %d times", len(g.told))
	}
	g.fails = errors.New("the volume is away")
	g.pass(time.Minute, 0)
	if len(g.told) != 1 {
		t.Error("what could not be seen was told")
	}
}

func TestWhatAVolumeIsFilledWithLately(t *testing.T) {
	g := newGauged(t, emptyVolume(t))
	g.pass(10*time.Minute, 60<<20)
	if got := g.last().Lately; got != 60<<20 {
		t.Errorf("in a minute it is %d", got)
	}
	g.pass(2*time.Minute, 0)
	if got := g.last().Lately; got != 0 {
		t.Errorf("a minute after it is %d", got)
	}
}

// Who is told that a volume gets short asks how full it is: what it is told then is not ten seconds old.
func TestTheRoomIsLookedAtAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		g := newGauged(t, emptyVolume(t))
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		synctest.Wait()
		g.used = 2 << 30
		g.LookNow()
		synctest.Wait()
		if used := g.last().Used; used != 2<<30 {
			t.Errorf("it says that %d MiB are used", used>>20)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheRoomOfARealFileSystem(t *testing.T) {
	size, used, err := newMeter(t.TempDir()).used()
	if err != nil || size <= 0 || used < 0 || used > size {
		t.Errorf("it is %d of %d, %v", used, size, err)
	}
	if _, _, err := newMeter("/no/such/folder").used(); err == nil {
		t.Error("a folder that is not there has room")
	}
}

// What a FaultDrill has filled is told, and is in no rate: nobody enlarges a volume for it.
func TestWhatADrillFillsIsInNoRate(t *testing.T) {
	volume := emptyVolume(t)
	g := newGauged(t, volume)
	g.pass(4*time.Hour, 0)
	must(t, os.WriteFile(FillPath(volume), nil, 0o600))
	for gib := int64(1); gib <= 8; gib++ { // longer than a drill, so that it would be a trend
		must(t, os.Truncate(FillPath(volume), gib<<30))
		g.used += 1 << 30
		g.pass(time.Hour, 0)
	}
	if got := g.last(); got.Drill != 8<<30 || got.Used != 9<<30 || got.Lately != 0 || *got.PerDay != 0 {
		t.Errorf("it tells %+v, and %d a day", got, *got.PerDay)
	}
	must(t, os.Remove(FillPath(volume)))
	g.used -= 8 << 30
	g.pass(time.Minute, 0)
	if got := g.last(); got.Drill != 0 || got.Used != 1<<30 || got.Lately != 0 {
		t.Errorf("after it, it tells %+v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
