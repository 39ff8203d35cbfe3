package process

import (
	"path/filepath"

	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/tablerestore"
)

// tableRestore is what the Pod of a DatabaseRestore does that brings tables back.
var tableRestore = podWork{
	kinds: []kind{
		{
			"copy", "Run a restored copy until `toban work bring` has ended (in the Pod of a DatabaseRestore)",
			"backup copy", does(tablerestore.Copy, copyFlags),
		},
		{
			"bring", "Bring tables from a restored copy to the primary (in the Pod of a DatabaseRestore)",
			"backup bring", does(tablerestore.Bring, bringFlags),
		},
	},
	refused: []error{tablerestore.ErrRefused},
}

func copyFlags(f *pflag.FlagSet, o *tablerestore.CopyOptions) {
	settingsFlag(f, &o.Settings, filepath.Join(naming.PathRestore, naming.KeyBring))
	scratchFlag(f, &o.Volume)
	socketFlag(f, &o.Run)
}

func bringFlags(f *pflag.FlagSet, o *tablerestore.BringOptions) {
	podFlags(f, &o.Options, filepath.Join(naming.PathRestore, naming.KeyBring))
	planFlag(f, &o.Plan, "file with the hosts")
	portFlag(f, &o.Port)
	scratchFlag(f, &o.Volume)
	f.StringVar(&o.Copy, "copy", naming.PathCopy, "folder with the socket of the restored copy")
}
