// Command pause is the first process of every Pod sandbox: it does nothing but
// hold the Pod's namespaces, and reaps orphans when the Pod shares one process
// namespace.
//
// It is a program of its own, free of dependencies, so that its image is one
// small static binary.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap collects every child that has ended. One SIGCHLD may stand for several
// children, hence the loop.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}
