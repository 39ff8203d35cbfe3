package process

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/drill"
)

// faultDrill is what the Pod of a FaultDrill does.
var faultDrill = podWork{kinds: []kind{
	{
		"faultdrill", "Write as applications do while something is broken (in the Pod of a FaultDrill)", "faultdrill",
		does(drill.RunPod, drillFlags),
	},
}}

func drillFlags(f *pflag.FlagSet, o *drill.PodOptions) {
	f.StringVar(&o.App, "app", naming.PathApp, "folder with the application's credentials")
	f.StringVar(&o.Hosts, "hosts", "", "names of the instances, with commas between them")
	f.BoolVar(&o.Standbys, "standbys", false, "also read from standbys, and see how old that is")
	f.StringVar(&o.Schema, "schema", "", "schema to make for the rows; it is removed at the end")
	f.DurationVar(&o.Observe, "observe", 30*time.Second, "for how long to write")
	f.DurationVar(&o.AbortAfter, "abort-after", time.Minute, "how long a client may be without an acknowledged write")
	f.StringVar(&o.AbortWhen, "abort-when", "", "a query that says when to give up, by a true value")
	f.StringVar(&o.Probe, "probe", ":"+strconv.Itoa(naming.PortProbe), "where to answer the kubelet over HTTP")
	terminationFlag(f, &o.Termination, "file for the result")
}
