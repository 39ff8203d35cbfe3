package running

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

// A primary is looked into at its promotion, and while that fails soon again; a standby never is, and what was found
// before is taken back.
func TestOnlyAPrimaryLooksHowTextsAreSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary atomic.Bool
		var looks atomic.Int32
		board := status.New(protocol.Status{Collations: nil})
		c := &collations{
			primary: primary.Load, freeSpace: func() (uint64, error) { return 1 << 40, nil }, status: board,
			log: slog.New(slog.DiscardHandler),
			connect: func(context.Context, string) (*pgx.Conn, error) {
				looks.Add(1)
				return nil, errors.New("no room for a session")
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.run(ctx)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := looks.Load(); n != 0 || board.Get().Collations != nil {
			t.Fatalf("a standby has looked %d times", n)
		}
		primary.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		said := board.Get().Collations
		if n := looks.Load(); n != 1 || said == nil || said.Problem != "no room for a session" {
			t.Fatalf("a new primary has looked %d times, and says %+v", n, said)
		}
		number := board.Get().Number
		time.Sleep(10 * collationsAgain)
		synctest.Wait()
		if n := looks.Load(); n < 10 || n > 12 || board.Get().Number != number {
			t.Errorf("it has looked %d times, and said %d times something", n, board.Get().Number-number)
		}
	})
}
