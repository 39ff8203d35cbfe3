package process

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work"
)

// Sides is the process in the Pods of a blue/green upgrade. Each does one step.
func Sides() *cobra.Command {
	c := &cobra.Command{Use: "sides", Short: "Do a step of a blue/green upgrade (in a Pod of its own)", Hidden: true}
	for _, x := range []struct {
		work  protocol.SidesWork
		short string
	}{
		{protocol.SidesPublish, "Make publications and slots, if nothing is in the way"},
		{protocol.SidesFollow, "Have the following side follow"},
		{protocol.SidesCompare, "Compare all rows of both sides"},
		{protocol.SidesPrepare, "Make the link back"},
		{protocol.SidesChange, "Hand over, when told to begin"},
		{protocol.SidesSettle, "Turn the link"},
		{protocol.SidesLeave, "Have the following side stop, and note where it is"},
		{protocol.SidesReturn, "Have the following side go on from there"},
		{protocol.SidesCancel, "Remove all that there is of the links"},
	} {
		c.AddCommand(sides(x.work, x.short))
	}
	return c
}

func sides(step protocol.SidesWork, short string) *cobra.Command {
	o := work.SidesOptions{Work: step}
	c := hidden(&cobra.Command{
		Use:   string(step),
		Short: short,
		RunE:  func(c *cobra.Command, _ []string) error { return work.Sides(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathSides, naming.KeySides))
	f.StringVar(&o.GreenAuthority, "green-authority", naming.PathGreenAuthority,
		"folder with the authority of the second side")
	f.BoolVar(&o.FromGreen, "from-green", false, "the second side is the one that serves")
	f.StringVar(&o.ServersFile, "servers-file", filepath.Join(naming.PathRun, postgres.FileServers),
		"where the servers have the authorities that they know each other's by")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	return c
}
