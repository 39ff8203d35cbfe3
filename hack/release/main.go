// Command release makes what is handed out, in the root of the repository:
//
//	release make VERSION [REGISTRY [URL]]  all that a release has, in dist/, or in the folder DIST; nothing is sent
//	release twice [-whole|-release]        the program and its image, twice, and fails where they differ
//	release manifest IMAGE [FILE]          config/install.yaml, or another manifest, with another image
//	release push REGISTRY                  all images to a registry, and the manifests that name them there
//	release sbom [PROGRAM VERSION FILE]    what a program is made of, by default bin/toban, into bin/toban.cdx.json
//
// The same sources and the same Go give the same bytes. It needs bin/localkube, which makes images.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

var errUsage = errors.New("say what to make: release make|twice|manifest|push|sbom (the head of hack/release/main.go)")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, errUsage), errors.Is(err, errVersion), errors.Is(err, errRegistry):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	verb, args := args[0], append(args[1:], "", "", "")
	switch verb {
	case "make":
		return makeRelease(ctx, cmp.Or(os.Getenv("DIST"), "dist"), args[0], args[1], args[2])
	case "twice":
		return twice(ctx, args[0])
	case "manifest":
		text, err := manifest(cmp.Or(args[1], "config/install.yaml"), args[0])
		if err == nil {
			_, err = os.Stdout.WriteString(text)
		}
		return err
	case "push":
		return push(ctx, args[0])
	case "sbom":
		return ownSBOM(ctx, args[0], args[1], args[2])
	}
	return errUsage
}

// command is a program in the root of the repository, which tells people what it does. Variables are more of its
// environment.
func command(ctx context.Context, variables []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // what people type is for no shell
	c.Env = append(os.Environ(), variables...)
	c.Stderr = os.Stderr
	return c
}

// output is what a program says.
func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := command(ctx, nil, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// tool is the path of a program of tools.
func tool(ctx context.Context, name string) (string, error) { return output(ctx, "hack/tool.sh", name) }
