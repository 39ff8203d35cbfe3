// Package sendpasswords tells the operator the passwords of a PostgreSQL, in the Pod that mounts their Secrets.
package sendpasswords

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"toban.dev/internal/passwords"
	"toban.dev/internal/pause"
)

// lookEvery is how often the mounted Secrets are looked at. The kubelet brings a change within about a minute.
const lookEvery = time.Second

// Options are what the Pod that reads passwords is told.
type Options struct {
	// Secrets is the folder with a folder for each Secret, Known the file for the digest of what the operator has been
	// told.
	Secrets, Known string
	// SealFor is the operator's public key, Termination the file for the sealed passwords.
	SealFor, Termination string
}

// Run reads the Secrets that are mounted, in a PostgreSQL's Pod, and leaves what is in them, sealed for the
// operator: at once where nothing is known yet, and otherwise as soon as it is something else than what is known.
func Run(ctx context.Context, o Options) error {
	known, err := os.ReadFile(o.Known)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is known: %w", err)
	}
	for {
		found, err := passwords.Read(o.Secrets)
		if err != nil {
			return err
		}
		digest, err := passwords.Digest(found)
		if err != nil {
			return err
		}
		if digest != string(known) {
			return o.report(found, digest)
		}
		if !pause.For(ctx, lookEvery) {
			return fmt.Errorf("asked to stop while nothing has changed: %w", ctx.Err())
		}
	}
}

// report leaves the message first: what is known must have been told.
func (o Options) report(found map[string]passwords.Found, digest string) error {
	message, err := passwords.Seal(o.SealFor, found)
	if err != nil {
		_ = os.WriteFile(o.Termination, []byte(err.Error()), 0o600) // the same is in the error
		return err
	}
	if err := os.WriteFile(o.Termination, []byte(message), 0o600); err != nil {
		return fmt.Errorf("leave the passwords for the operator: %w", err)
	}
	if err := os.WriteFile(o.Known, []byte(digest), 0o600); err != nil {
		return fmt.Errorf("note what is known: %w", err)
	}
	return nil
}
