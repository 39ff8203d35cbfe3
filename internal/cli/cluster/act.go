package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// result is the answer of a verb that has done something.
type result struct {
	// Kind, Namespace and Name are those of the object that was created or changed.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Message is what a person was told last.
	Message string `json:"message"`
	// Status is that of the object.
	Status any `json:"status,omitempty"`
}

// Act runs a verb that does something. What it tells meanwhile is its answer to a person. If a program asks, that goes
// to the standard error, and the answer is the result. A verb that fails has no answer but its error.
func (c *Cluster) Act(cmd *cobra.Command, run func(out io.Writer) error) error {
	if err := c.Output.Check(); err != nil {
		return err
	}
	if !c.Output.Programs() {
		return run(cmd.OutOrStdout())
	}
	told := &told{Writer: cmd.ErrOrStderr()}
	if err := run(told); err != nil {
		return err
	}
	answer, err := c.result(cmd.Context(), told.last())
	if err != nil {
		return err
	}
	return c.Output.Write(cmd.OutOrStdout(), answer)
}

// Acts is what a verb runs that does something to what its first argument names.
func (c *Cluster) Acts(
	run func(ctx context.Context, out io.Writer, name string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return c.Act(cmd, func(out io.Writer) error { return run(cmd.Context(), out, args[0]) })
	}
}

// result reads the object of a verb as it is now.
func (c *Cluster) result(ctx context.Context, message string) (result, error) {
	api, err := c.Connect()
	if err != nil {
		return result{}, err
	}
	gvk, err := apiutil.GVKForObject(c.Subject, api.Scheme())
	if err != nil {
		return result{}, fmt.Errorf("name the kind of the answer: %w", err)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(gvk)
	if err := api.Get(ctx, client.ObjectKeyFromObject(c.Subject), now); err != nil {
		return result{}, fmt.Errorf("read the %s %s: %w", gvk.Kind, c.Subject.GetName(), err)
	}
	return result{gvk.Kind, now.GetNamespace(), now.GetName(), message, now.Object["status"]}, nil
}

// told passes on what a verb tells, and remembers it.
type told struct {
	io.Writer
	text bytes.Buffer
}

// Write passes it on.
func (t *told) Write(p []byte) (int, error) {
	t.text.Write(p)
	return t.Writer.Write(p)
}

// last is the last line that was told.
func (t *told) last() string {
	lines := strings.Split(strings.TrimSpace(t.text.String()), "\n")
	return lines[len(lines)-1]
}
