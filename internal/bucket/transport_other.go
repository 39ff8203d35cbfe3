//go:build !linux

package bucket

import "syscall"

// keepLittle leaves a socket as it is: it is about slow lines, and the plugin of kubectl, all that runs elsewhere than on
// Linux, moves little.
func keepLittle(_, _ string, _ syscall.RawConn) error { return nil }
