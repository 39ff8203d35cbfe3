package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"
)

// ways are the addresses and names by which an instance may be reached, in the order in which they are tried, and
// after how long without an answer the next is tried beside the one before.
type ways struct {
	hosts []string
	next  time.Duration
}

// reach tries the ways to an instance, the next when one has failed or has not
// answered for a while, and returns the first answer, or the last error.
func reach[Answer any](ctx context.Context, w ways, deadline time.Duration,
	try func(ctx context.Context, host string) (Answer, error),
) (Answer, error) {
	type result struct {
		answer Answer
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	left := slices.DeleteFunc(slices.Clone(w.hosts), func(host string) bool { return host == "" })
	last, results := result{err: errNoWay}, make(chan result, len(left))
	for running := 0; running > 0 || len(left) > 0; {
		if len(left) > 0 {
			host := left[0]
			left = left[1:]
			running++
			go func() {
				answer, err := try(ctx, host)
				results <- result{answer, err}
			}()
		}
		var next <-chan time.Time
		if len(left) > 0 {
			next = time.After(w.next)
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				return r.answer, nil
			}
			if !unresolved(r.err) || last.err == errNoWay { //nolint:errorlint // it is the very one
				last = r
			}
		case <-next:
		}
	}
	return last.answer, last.err
}

// errNoWay is the error where nothing is known by which to reach an instance.
var errNoWay = fmt.Errorf("no address and no name is known: %w", syscall.EHOSTUNREACH)

// unresolved says that a name could not be looked up, which tells nothing of who has it: what another way has told
// counts.
func unresolved(err error) bool {
	_, is := errors.AsType[*net.DNSError](err)
	return is
}

// refused says that nobody listens there.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
