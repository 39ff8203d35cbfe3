package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli/show"
)

// shownVersion is which program this is.
type shownVersion struct {
	Version string `json:"version"`
	// Go is the version of Go that it was built with.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version is `toban version`.
func Version(version string) *cobra.Command {
	var o show.Output
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := shownVersion{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return o.Show(c.OutOrStdout(), v, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "toban %s (%s, %s)\n", v.Version, v.Go, v.Platform)
				return err
			})
		},
	}
	o.Flags(c.Flags())
	return c
}
