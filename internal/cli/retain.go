package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"toban.dev/internal/naming"
)

// Retain is `toban backup retain`: the process in the Pod that makes room in a store that is full.
func Retain() *cobra.Command {
	var o takeOptions
	c := &cobra.Command{
		Use:    "retain",
		Short:  "Remove what spec.backup.retention does not keep (in a Pod of its own)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return o.retain(c.Context()) },
	}
	o.flags(c.Flags(), filepath.Join(naming.PathBackup, naming.KeyBackup))
	return c
}

// retain makes room, and leaves the result where the kubelet finds it, whatever came of it.
func (o takeOptions) retain(ctx context.Context) error {
	t := &take{pod: newPod(o.podOptions)}
	err := t.makeRoom(ctx)
	if err != nil {
		t.result.Error = err.Error()
	}
	return errors.Join(err, leave(o.termination, &t.result, &t.result.Error))
}

// makeRoom removes what is not to be kept.
func (t *take) makeRoom(ctx context.Context) error {
	stop, err := t.begin(ctx, naming.IdentityBackup, &t.settings, &t.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.retain(ctx)
}
