//go:build unix

package show

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResize has a channel get a signal whenever the terminal has got another size.
func notifyResize(sizes chan<- os.Signal) { signal.Notify(sizes, syscall.SIGWINCH) }
