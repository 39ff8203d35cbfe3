package process

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toban.dev/internal/agent"
	"toban.dev/internal/naming"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/major"
	"toban.dev/internal/work/upgrade"
)

// majorUpgrade is what the Pods of an upgrade to another major version do, and of its check and its rehearsal.
var majorUpgrade = podWork{
	kinds: []kind{
		{
			"upgrade collect", "Copy the programs of the former version, so that they run in the new image",
			"upgrade collect", does(upgrade.Collect, collectFlags),
		},
		{
			"upgrade run", "Upgrade the data on an instance's volume, when told to begin (in the Pod of an upgrade)",
			"upgrade run", does(upgrade.Run, upgradeFlags),
		},
		{
			"upgrade back",
			"Give the old data on an instance's volume back (in the Pod of an upgrade that is given up)",
			"upgrade back", does(upgrade.Back, upgradeFlags),
		},
		{
			"upgrade check", "Look whether a database can be upgraded, while it serves (in a Pod of its own)",
			"upgrade check", does(upgrade.Check, upgradeCheckFlags),
		},
		{
			"upgrade rehearse",
			"Upgrade what `toban work verify` has restored, and look through it (in the Pod of a rehearsal)",
			"upgrade rehearse", does(upgrade.Rehearse, rehearseFlags),
		},
	},
	verbs:   map[string]func() *cobra.Command{"upgrade": upgradeDump},
	refused: []error{major.ErrRefused, former.ErrImage},
	agent:   func(o *agent.Options) { o.GiveUp, o.GiveUpOthers = major.GiveUp, major.GiveUpOthers },
}

func collectFlags(f *pflag.FlagSet, o *upgrade.CollectOptions) {
	f.IntVar(&o.Major, "major", 0, "major version of PostgreSQL in this image")
	f.StringVar(&o.To, "to", naming.PathFormer, "folder for the programs, which has the same path where they run")
	terminationFlag(f, &o.Termination, "file for the error")
}

func upgradeFlags(f *pflag.FlagSet, o *upgrade.Options) {
	podFlags(f, &o.Options, filepath.Join(naming.PathUpgrade, naming.KeyUpgrade))
	programsFlag(f, &o.Former)
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the instance's volume")
	walVolumeFlag(f, &o.WALVolume)
}

func upgradeCheckFlags(f *pflag.FlagSet, o *upgrade.CheckOptions) {
	podFlags(f, &o.Options, filepath.Join(naming.PathUpgrade, naming.KeyUpgrade))
	programsFlag(f, &o.Former)
	f.StringVar(&o.Scratch, "scratch", naming.PathScratch, "folder for a copy of the schema")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "where the instances have their volumes")
	portFlag(f, &o.Port)
}

func rehearseFlags(f *pflag.FlagSet, o *upgrade.RehearseOptions) {
	settingsFlag(f, &o.Settings, filepath.Join(naming.PathUpgrade, naming.KeyUpgrade))
	f.StringVar(&o.Backup, "backup-settings", filepath.Join(naming.PathBackup, naming.KeyBackup),
		"file with the settings of a verification")
	programsFlag(f, &o.Former)
	scratchFlag(f, &o.Volume)
	socketFlag(f, &o.Run)
	terminationFlag(f, &o.Termination, "file for the result")
}

func programsFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "former", naming.PathFormer, "folder with the programs of the former version")
}

// upgradeDump is the process that pg_upgrade runs in the place of pg_dump.
func upgradeDump() *cobra.Command {
	return &cobra.Command{
		Use:                "dump PROGRAM ARGUMENTS",
		Short:              "Run pg_dump for pg_upgrade, without what the new version would refuse",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return major.Dump(c.Context(), args[0], args[1:])
		},
	}
}
