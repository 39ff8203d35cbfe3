package process

import (
	"os"

	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/find"
)

// undelete is what the Pod does that looks for the backups of a SampleDB that was deleted.
var undelete = podWork{kinds: []kind{
	{
		"find", "Look for backups in a store of which nothing else is known (in the Pod of an undelete)", "backup find",
		does(find.Run, findFlags),
	},
}}

func findFlags(f *pflag.FlagSet, o *find.Options) {
	o.Out = os.Stdout
	f.StringVar(&o.Settings, "settings", "", "where to look, in JSON")
	f.StringVar(&o.Key, "key", naming.PathKey, "folder with the key of the archives")
}
