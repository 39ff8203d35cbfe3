package cli

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/agent"
	"toban.dev/internal/protocol"
)

// A restore into a new SampleDB waits for whoever works on the volume, one in place only for other restores.
func TestARestoreWaitsForTheVolume(t *testing.T) {
	type lock = func(context.Context, string, func(string)) (*agent.Lock, error)
	for name, c := range map[string]struct {
		held    lock
		inPlace string
		waits   bool
	}{
		"an agent, new":       {agent.OwnVolume, "", true},
		"an agent, in place":  {agent.OwnVolume, "oops", false},
		"a restore, new":      {agent.OwnRestore, "", true},
		"a restore, in place": {agent.OwnRestore, "oops", true},
		"nobody at all, new":  {nil, "", false},
		"nobody at all, oops": {nil, "oops", false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			var other *agent.Lock
			if c.held != nil {
				var err error
				if other, err = c.held(t.Context(), volume, func(string) {}); err != nil {
					t.Fatal(err)
				}
			}
			r := &restore{pod: pod{log: slog.New(slog.DiscardHandler)}, volume: volume, settings: protocol.RestoreSettings{InPlace: c.inPlace}}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- r.lock(ctx) }()
			for !strings.HasPrefix(r.progress.get().Step, "waits for the volume") && len(got) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-got; errors.Is(err, context.Canceled) != c.waits || !c.waits && err != nil {
				t.Errorf("it has the volume: %v", err)
			}
			runtime.KeepAlive(other)
		})
	}
}
