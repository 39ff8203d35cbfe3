package protocol

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// thin makes TCP repeat a lost packet at a steady pace while little is on its
// way, as with heartbeats: every 200 ms or so, not after 0.2, 0.4, 0.8, 1.6 s.
// On a network that loses packets, an instance would pass for dead otherwise
// (Linux' documentation, networking/tcp-thin). A kernel without it does it the
// old way.
func thin(_, _ string, raw syscall.RawConn) error {
	err := raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_THIN_LINEAR_TIMEOUTS, 1)
	})
	if err != nil {
		return fmt.Errorf("set up a socket: %w", err)
	}
	return nil
}
