package peers

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"toban.dev/internal/protocol"
)

// reach tries the ways to an instance, the next when one has failed or has not
// answered for a while, and returns the first answer, or the last error.
func reach[Answer any](ctx context.Context, m protocol.Member, deadline time.Duration,
	try func(ctx context.Context, host string) (Answer, error),
) (Answer, error) {
	type result struct {
		answer Answer
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ways := slices.DeleteFunc([]string{m.Address, m.Host}, func(host string) bool { return host == "" })
	last, results := result{err: syscall.EHOSTUNREACH}, make(chan result, len(ways))
	for running := 0; running > 0 || len(ways) > 0; {
		if len(ways) > 0 {
			host := ways[0]
			ways = ways[1:]
			running++
			go func() {
				answer, err := try(ctx, host)
				results <- result{answer, err}
			}()
		}
		var next <-chan time.Time
		if len(ways) > 0 {
			next = time.After(nextWay)
		}
		select {
		case last = <-results:
			running--
			if last.err == nil {
				return last.answer, nil
			}
		case <-next:
		}
	}
	return last.answer, last.err
}

// refused says that nobody listens there.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
