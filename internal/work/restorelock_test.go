package work

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/work/pod"
)

// A restore into a new SampleDB waits for whoever works on the volume, one in place only for other restores.
func TestARestoreWaitsForTheVolume(t *testing.T) {
	type lock = func(context.Context, string, func(string)) (*volume.Lock, error)
	for name, c := range map[string]struct {
		held    lock
		inPlace string
		waits   bool
	}{
		"an agent, new":       {volume.Own, "", true},
		"an agent, in place":  {volume.Own, "oops", false},
		"a restore, new":      {volume.OwnRestore, "", true},
		"a restore, in place": {volume.OwnRestore, "oops", true},
		"nobody at all, new":  {nil, "", false},
		"nobody at all, oops": {nil, "oops", false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			var other *volume.Lock
			if c.held != nil {
				var err error
				if other, err = c.held(t.Context(), folder, func(string) {}); err != nil {
					t.Fatal(err)
				}
			}
			r := &restoring{
				Pod:    pod.Pod{Log: slog.New(slog.DiscardHandler)},
				volume: folder, settings: protocol.RestoreSettings{InPlace: c.inPlace},
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- r.lock(ctx) }()
			for !strings.HasPrefix(r.Progress.Get().Step, "waits for the volume") && len(got) == 0 && ctx.Err() == nil {
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

// What stays free for the server that runs on the volume is bounded: a large volume need not be a tenth empty.
func TestReserveOf(t *testing.T) {
	for size, want := range map[uint64]uint64{0: 0, 20 << 30: 2 << 30, 80 << 30: 8 << 30, 10 << 40: 8 << 30} {
		if got := reserveOf(size); got != want {
			t.Errorf("of %d bytes %d stay free, not %d", size, got, want)
		}
	}
}
