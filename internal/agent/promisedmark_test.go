package agent

import (
	"bytes"
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

// A volume without room may stay so for long.
func TestAMarkThatCanNotBeWrittenIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		p := &promises{
			gauge: &pressure.Gauge{}, leaders: func() time.Duration { return time.Second }, since: time.Now(),
			mark: volume.NewSlackMark(t.TempDir(), func(string, []byte, os.FileMode) error {
				return errors.New("no space left on device")
			}),
			post: func(machine.Event) {}, log: slog.New(slog.NewTextHandler(&text, nil)),
		}
		for range 4 * 60 {
			p.look()
			time.Sleep(250 * time.Millisecond)
		}
		if n := bytes.Count(text.Bytes(), []byte("\n")); n > 10 {
			t.Errorf("%d lines, %d bytes a minute", n, text.Len())
		}
	})
}
