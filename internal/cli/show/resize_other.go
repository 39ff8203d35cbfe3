//go:build !unix

package show

import "os"

// notifyResize does nothing: Windows has no signal for a terminal of another size. The program in the Pod has the one
// that it had at the start.
func notifyResize(chan<- os.Signal) {}
