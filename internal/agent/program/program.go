// Package program is the file that an agent runs, and those that it is given to go on as: where they lie, by which hash
// they are known, and whether one could take over.
package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// RefusedError says that a program is none to go on as.
type RefusedError struct{ why string }

// Error says why.
func (e *RefusedError) Error() string { return e.why }

func refuse(format string, values ...any) error { return &RefusedError{fmt.Sprintf(format, values...)} }

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Folder is where programs lie that were given. It is not on the persistent volume, which may hang.
type Folder string

// prefix begins the name of each file.
const prefix = "toban-"

// Path is where a program lies.
func (f Folder) Path(sha string) string { return filepath.Join(string(f), prefix+sha) }

// Take stores a program that is given, after it has looked whether it is the one that it is said to be.
func (f Folder) Take(is protocol.Program, body io.Reader) (path string, err error) {
	if is.Architecture != runtime.GOARCH {
		return "", refuse("the program is for %q, and this machine is %s", is.Architecture, runtime.GOARCH)
	}
	if !hash.MatchString(is.SHA256) {
		return "", refuse("%q is no SHA-256", is.SHA256)
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return "", fmt.Errorf("make the folder for programs: %w", err)
	}
	file, err := os.CreateTemp(string(f), "incoming-")
	if err != nil {
		return "", fmt.Errorf("store the program: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it has been renamed
	got, err := copyHashed(file, body)
	if err := errors.Join(err, file.Chmod(0o700), file.Close()); err != nil {
		return "", fmt.Errorf("store the program: %w", err)
	}
	if got != is.SHA256 {
		return "", refuse("what came has the SHA-256 %s, not %s", got, is.SHA256)
	}
	path = f.Path(is.SHA256)
	if err := os.Rename(file.Name(), path); err != nil {
		return "", fmt.Errorf("store the program: %w", err)
	}
	return path, nil
}

func copyHashed(to io.Writer, from io.Reader) (sha string, err error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, protocol.MaxProgram+1))
	if err == nil && n > protocol.MaxProgram {
		err = refuse("the program is larger than %d bytes", protocol.MaxProgram)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Clear removes all programs but one.
func (f Folder) Clear(keep string) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return // there are none
	}
	for _, entry := range entries {
		if path := filepath.Join(string(f), entry.Name()); path != keep {
			_ = os.Remove(path) // the Pod's end removes it
		}
	}
}

// Own is the program that this process runs. It is read once.
var Own = sync.OnceValues(own)

func own() (protocol.Program, error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return protocol.Program{}, fmt.Errorf("read this program: %w", err)
	}
	defer file.Close()
	sha, err := copyHashed(io.Discard, file)
	return protocol.Program{SHA256: sha, Architecture: runtime.GOARCH}, err
}

// rehearsalDeadline is how long a rehearsal may take: many times as long as even on a busy machine.
const rehearsalDeadline = 15 * time.Second

// Rehearsed is what a program says at the end of a rehearsal that went well.
const Rehearsed = "could take over"

// Rehearse has a program begin with the arguments of this process, up to where it would take over.
func Rehearse(asked context.Context, path string, args []string, env ...string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(asked, rehearsalDeadline)
	defer cancel()
	var said strings.Builder
	began := time.Now()
	for {
		cmd := exec.CommandContext(ctx, path, append(slices.Clone(args), "--rehearse")...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
		err = postgres.Children.Run(cmd)
		// A program that was started while this one was being written has it open, until it runs.
		if !errors.Is(err, syscall.ETXTBSY) || !pause.For(ctx, 20*time.Millisecond) {
			break
		}
	}
	switch words := strings.TrimSpace(said.String()); {
	case asked.Err() != nil: // that says nothing of the program
		return 0, fmt.Errorf("the rehearsal of the program was given up: %w", asked.Err())
	case ctx.Err() != nil:
		return 0, refuse("the rehearsal of the program did not end within %s", rehearsalDeadline)
	case err != nil:
		return 0, refuse("the rehearsal of the program failed (%s): %s", err, last(words))
	case !strings.HasSuffix(words, Rehearsed):
		return 0, refuse("the program does not say that it could take over: %s", last(words))
	}
	return time.Since(began), nil
}

// last is the end of a text.
func last(words string) string { return words[max(0, len(words)-500):] }
