package bucket

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepLittle bounds what the kernel keeps of a connection (Linux' tcp(7), TCP_NOTSENT_LOWAT).
func keepLittle(_, _ string, raw syscall.RawConn) error {
	err := raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) // it is only about slow lines
	})
	if err != nil {
		return fmt.Errorf("set up a socket: %w", err)
	}
	return nil
}
