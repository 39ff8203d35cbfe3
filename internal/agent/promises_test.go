package agent

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/volume"
)

// promisesOn are promises whose mark is written by a function. All that they post is given to another one.
func promisesOn(
	t *testing.T, leaders func() time.Duration, write func(content []byte) error, post func(machine.Event),
	log io.Writer,
) *promises {
	t.Helper()
	return &promises{
		gauge: &pressure.Gauge{}, leaders: leaders, since: time.Now(),
		mark: volume.NewSlackMark(t.TempDir(), func(_ string, content []byte, _ os.FileMode) error {
			return write(content)
		}),
		post: post, log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// What is promised is on the volume before, what can't be put there is not promised, and the mark goes when no promise
// counts any more.
func TestASlackIsOnTheVolumeBeforeItIsPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		var promised []time.Duration
		var fails error
		leaders := time.Duration(0)
		p := promisesOn(t, func() time.Duration { return leaders }, func(content []byte) error {
			if fails == nil {
				written = append(written, string(content))
			}
			return fails
		}, func(e machine.Event) {
			if seen, is := e.(machine.SlackSeen); is {
				promised = append(promised, seen.Leaders)
			}
		}, io.Discard)
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

// A volume without room may stay so for long.
func TestAMarkThatCanNotBeWrittenIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		p := promisesOn(t, func() time.Duration { return time.Second }, func([]byte) error {
			return errors.New("no space left on device")
		}, func(machine.Event) {}, &text)
		for range 4 * 60 {
			p.look()
			time.Sleep(250 * time.Millisecond)
		}
		if n := bytes.Count(text.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%d lines, %d bytes a minute", n, text.Len())
		}
	})
}
