package process

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"toban.dev/internal/naming"
	"toban.dev/internal/work"
	"toban.dev/internal/work/major"
)

// UpgradePods are the verbs of `toban upgrade` that the Pods of an upgrade to another major version run.
func UpgradePods() []*cobra.Command {
	return []*cobra.Command{
		upgradeCollect(), upgradeRun(), upgradeBack(), upgradeCheck(), upgradeRehearse(), upgradeDump(),
	}
}

// upgradeCollect is the process in the container of the former image.
func upgradeCollect() *cobra.Command {
	var o work.CollectOptions
	c := hidden(&cobra.Command{
		Use:   "collect",
		Short: "Copy the programs of the former version, so that they run in the new image",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Collect(c.Context(), o) },
	})
	f := c.Flags()
	f.IntVar(&o.Major, "major", 0, "major version of PostgreSQL in this image")
	f.StringVar(&o.To, "to", naming.PathFormer, "folder for the programs, which has the same path where they run")
	terminationFlag(f, &o.Termination, "file for the error")
	return c
}

// upgradeRun is the process that upgrades.
func upgradeRun() *cobra.Command {
	var o work.UpgradeOptions
	c := hidden(&cobra.Command{
		Use:   "run",
		Short: "Upgrade the data on an instance's volume, when told to begin (in the Pod of an upgrade)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Upgrade(c.Context(), o) },
	})
	upgradeFlags(c, &o)
	return c
}

// upgradeBack is the process that gives the old data back.
func upgradeBack() *cobra.Command {
	var o work.UpgradeOptions
	c := hidden(&cobra.Command{
		Use:   "back",
		Short: "Give the old data on an instance's volume back (in the Pod of an upgrade that is given up)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Back(c.Context(), o) },
	})
	upgradeFlags(c, &o)
	return c
}

// upgradeCheck is the process that looks whether there can be an upgrade.
func upgradeCheck() *cobra.Command {
	var o work.UpgradeCheckOptions
	c := hidden(&cobra.Command{
		Use:   "check",
		Short: "Look whether a database can be upgraded, while it serves (in a Pod of its own)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.CheckUpgrade(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathUpgrade, naming.KeyUpgrade))
	f.StringVar(&o.Former, "former", naming.PathFormer, "folder with the programs of the former version")
	f.StringVar(&o.Scratch, "scratch", naming.PathScratch, "folder for a copy of the schema")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "where the instances have their volumes")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	return c
}

// upgradeRehearse is the process that upgrades a copy.
func upgradeRehearse() *cobra.Command {
	var o work.RehearseOptions
	c := hidden(&cobra.Command{
		Use:   "rehearse",
		Short: "Upgrade what `toban backup verify` has restored, and look through it (in the Pod of a rehearsal)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Rehearse(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Settings, "settings", filepath.Join(naming.PathUpgrade, naming.KeyUpgrade), "file with the settings")
	f.StringVar(&o.Backup, "backup-settings", filepath.Join(naming.PathBackup, naming.KeyBackup),
		"file with the settings of a verification")
	f.StringVar(&o.Former, "former", naming.PathFormer, "folder with the programs of the former version")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory for the socket")
	terminationFlag(f, &o.Termination, "file for the result")
	return c
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

func upgradeFlags(c *cobra.Command, o *work.UpgradeOptions) {
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathUpgrade, naming.KeyUpgrade))
	f.StringVar(&o.Former, "former", naming.PathFormer, "folder with the programs of the former version")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the instance's volume")
	walVolumeFlag(f, &o.WALVolume)
}
