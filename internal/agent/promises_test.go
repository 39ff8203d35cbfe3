package agent

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/volume"
)

// What is promised is on the volume before, what can't be put there is not promised, and the mark goes when no promise
// counts any more.
func TestASlackIsOnTheVolumeBeforeItIsPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		var promised []time.Duration
		var fails error
		leaders := time.Duration(0)
		p := &promises{
			gauge: &pressure.Gauge{}, leaders: func() time.Duration { return leaders }, since: time.Now(),
			mark: volume.NewSlackMark(t.TempDir(), func(_ string, content []byte, _ os.FileMode) error {
				if fails == nil {
					written = append(written, string(content))
				}
				return fails
			}),
			post: func(e machine.Event) {
				if seen, is := e.(machine.SlackSeen); is {
					promised = append(promised, seen.Slack)
				}
			},
			log: slog.New(slog.DiscardHandler),
		}
		leaders, fails = 4*time.Second, errors.New("no space left on device")
		if p.look(); len(promised) > 0 {
			t.Fatalf("promised is %v though it could not be written", promised)
		}
		fails = nil
		if p.look(); len(promised) != 1 || promised[0] != leaders || len(written) != 1 {
			t.Fatalf("promised is %v, written %v", promised, written)
		}
		leaders = 0
		p.look()
		p.look()
		if len(promised) != 2 || len(written) != 1 || !p.mark.Is() {
			t.Errorf("promised is %v, written %v", promised, written)
		}
		time.Sleep(machine.SlackHeld + time.Second)
		if p.look(); p.mark.Is() {
			t.Errorf("the mark stays: %v", written)
		}
	})
}
