package process

import (
	"path/filepath"

	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/bluegreen"
)

// blueGreen is what the Pods of a blue/green upgrade do.
var blueGreen = podWork{kinds: sides(), unlink: bluegreen.Unlink}

// sides are the steps of a blue/green upgrade, each in a Pod of its own.
func sides() (all []kind) {
	for _, x := range []struct {
		step  protocol.SidesWork
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
		name := "sides " + string(x.step)
		flags := func(f *pflag.FlagSet, o *bluegreen.SidesOptions) {
			o.Work = x.step
			sidesFlags(f, o)
		}
		all = append(all, kind{name, x.short, name, does(bluegreen.Sides, flags)})
	}
	return all
}

func sidesFlags(f *pflag.FlagSet, o *bluegreen.SidesOptions) {
	podFlags(f, &o.Options, filepath.Join(naming.PathSides, naming.KeySides))
	f.StringVar(&o.GreenAuthority, "green-authority", naming.PathGreenAuthority,
		"folder with the authority of the second side")
	f.BoolVar(&o.FromGreen, "from-green", false, "the second side is the one that serves")
	f.StringVar(&o.ServersFile, "servers-file", filepath.Join(naming.PathRun, postgres.FileServers),
		"where the servers have the authorities that they know each other's by")
	portFlag(f, &o.Port)
}
