package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"toban.dev/internal/naming"
	"toban.dev/internal/passwords"
)

// passwordsPause is how often the mounted Secrets are looked at. The kubelet brings a change within about a minute.
const passwordsPause = time.Second

type passwordsOptions struct{ secrets, known, seal, termination string }

// Passwords is the verb of the Pod that reads the passwords of a PostgreSQL.
func Passwords() *cobra.Command {
	var o passwordsOptions
	c := &cobra.Command{
		Use:   "passwords",
		Short: "Tell the operator the passwords of a PostgreSQL, sealed (its own Pod's command)",
		Long: "Reads the Secrets that are mounted, and leaves what is in them, sealed for the operator, " +
			"as the termination message: at once\n" +
			"where nothing is known yet, and otherwise as soon as it is something else than what is known. " +
			"A person has no need to run it.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.secrets, "secrets", naming.PathPasswords, "folder with a folder for each Secret")
	f.StringVar(&o.known, "known", naming.PathKnown, "file for the digest of what the operator has been told")
	f.StringVar(&o.seal, "seal-for", "", "the operator's public key")
	f.StringVar(&o.termination, "termination-log", "/dev/termination-log", "file for the sealed passwords")
	return c
}

func (o passwordsOptions) run(ctx context.Context) error {
	known, err := os.ReadFile(o.known)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is known: %w", err)
	}
	for {
		found, err := passwords.Read(o.secrets)
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("asked to stop while nothing has changed: %w", ctx.Err())
		case <-time.After(passwordsPause):
		}
	}
}

// report leaves the message first: what is known must have been told.
func (o passwordsOptions) report(found map[string]passwords.Found, digest string) error {
	message, err := passwords.Seal(o.seal, found)
	if err != nil {
		_ = os.WriteFile(o.termination, []byte(err.Error()), 0o600) // the same is in the error
		return err
	}
	if err := os.WriteFile(o.termination, []byte(message), 0o600); err != nil {
		return fmt.Errorf("leave the passwords for the operator: %w", err)
	}
	if err := os.WriteFile(o.known, []byte(digest), 0o600); err != nil {
		return fmt.Errorf("note what is known: %w", err)
	}
	return nil
}
