package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"toban.dev/localkube/internal/proc"
)

// ip runs a batch of ip(8) commands, in the network namespace of that name or
// on the host if it is empty.
func ip(ctx context.Context, netns string, lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	args := []string{"-batch", "-"}
	if netns != "" {
		args = append([]string{"-n", netns}, args...)
	}
	return run(ctx, strings.Join(lines, "\n")+"\n", "ip", args...)
}

func run(ctx context.Context, input, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("%s %s: %w: %s\n(it was given:)\n%s", program, strings.Join(args, " "), err, text, input)
	}
	return nil
}

// within calls do in a network namespace. The thread it runs on is never used
// again, so no other code ever finds itself in there.
func within(netnsPath string, do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err := proc.EnterNetns(netnsPath); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// linkExists reports whether the host has an interface of that name.
func linkExists(name string) bool { return exists("/sys/class/net/" + name) }
