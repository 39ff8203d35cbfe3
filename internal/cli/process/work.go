package process

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work"
)

// initPatience is how long the init Job waits for a primary: longer than a slow
// volume and a slow image take together.
const initPatience = 10 * time.Minute

// hidden is a verb that Pods call; people have no need to.
func hidden(c *cobra.Command) *cobra.Command {
	c.Hidden, c.Args = true, cobra.NoArgs
	return c
}

// walVolumeFlag is where the WAL of an instance is.
func walVolumeFlag(f *pflag.FlagSet, volume *string) {
	f.StringVar(volume, naming.FlagWALVolume, "", "the volume that pg_wal is on (the same where it is empty)")
}

// Take is `toban backup take`: the process in the Pod of a backup.
func Take() *cobra.Command {
	var o work.TakeOptions
	c := hidden(&cobra.Command{
		Use:   "take",
		Short: "Take a base backup (in the Pod of a DatabaseBackup)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Take(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathBackup, naming.KeyBackup))
	f.BoolVar(&o.Primary, "from-primary", false, "copy the primary, though there may be standbys")
	f.BoolVar(&o.Full, "full", false, "take a full backup, whatever the settings say")
	f.BoolVar(&o.Snapshot, naming.FlagSnapshot, false, "have a snapshot of the volume cut, and copy no data")
	f.BoolVar(&o.Prove, "prove", false, "read the backup with the key before it counts")
	f.StringVar(&o.Key, "key", naming.PathKey,
		"folder with the key of the archive, which an incremental backup needs, and one that is proved")
	f.StringVar(&o.Trigger, "trigger", naming.TriggerRequest, "why it is taken: schedule, request, migration or final")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	return c
}

// Retain is `toban backup retain`: the process in the Pod that removes what is not to be kept, from a store that is
// full, or with the credentials for deletion.
func Retain() *cobra.Command {
	var o work.PodOptions
	c := hidden(&cobra.Command{
		Use:   "retain",
		Short: "Remove what spec.backup.retention does not keep (in a Pod of its own)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Retain(c.Context(), o) },
	})
	podFlags(c.Flags(), &o, filepath.Join(naming.PathBackup, naming.KeyBackup))
	return c
}

// Second is `toban backup second`: the process in the Pod that copies the archive into the second store.
func Second() *cobra.Command {
	var o work.PodOptions
	c := hidden(&cobra.Command{
		Use:   "second",
		Short: "Copy the archive into spec.backup.secondStore (in a Pod of its own)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.CopyToSecond(c.Context(), o) },
	})
	podFlags(c.Flags(), &o, filepath.Join(naming.PathBackup, naming.KeyBackup))
	return c
}

// Keys is `toban backup keys`: the process in the container of a backup's Pod that alone has the key of the archive.
func Keys() *cobra.Command {
	var o work.KeysOptions
	c := hidden(&cobra.Command{
		Use:   "keys",
		Short: "Say which keys the Secret of an archive's encryption has (in the Pod of a backup)",
		RunE:  func(*cobra.Command, []string) error { return work.LookAtKeys(o) },
	})
	f := c.Flags()
	f.StringVar(&o.Key, "key", naming.PathKey, "folder with the key of the archive")
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory, for what the next container reads")
	return c
}

// Find is `toban backup find`: the process in the Pod of `kubectl toban undelete --store`.
func Find() *cobra.Command {
	var o work.FindOptions
	c := hidden(&cobra.Command{
		Use:   "find",
		Short: "Look for backups in a store of which nothing else is known (in the Pod of an undelete)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Find(c.Context(), o, c.OutOrStdout()) },
	})
	f := c.Flags()
	f.StringVar(&o.Settings, "settings", "", "where to look, in JSON")
	f.StringVar(&o.Key, "key", naming.PathKey, "folder with the key of the archives")
	return c
}

// Restore is `toban backup restore`: the process in the Pod that brings the data of a new SampleDB back.
func Restore() *cobra.Command {
	var o work.RestoreOptions
	c := hidden(&cobra.Command{
		Use:   "restore",
		Short: "Restore a database into an instance's volume (in the Pod of a restore)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Restore(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathRestore, naming.KeyRestore))
	f.StringVar(&o.Source, "source", naming.PathSource,
		"folder with the authority of the SampleDB whose volume is read")
	f.StringVar(&o.Key, "key", naming.PathKey, "folder with the key of the archive")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the instance's volume")
	walVolumeFlag(f, &o.WALVolume)
	return c
}

// Verify is `toban backup verify`: the process in the Pod of a verification that has the key and restores.
func Verify() *cobra.Command {
	var o work.VerifyOptions
	c := hidden(&cobra.Command{
		Use:   "verify",
		Short: "Restore a backup into a scratch volume, and check it (in the Pod of a verification)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Verify(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathBackup, naming.KeyBackup))
	f.StringVar(&o.Key, "key", naming.PathKey, "folder with the key of the archive")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.Backup, "backup", "", "name of the backup in the archive")
	f.BoolVar(&o.WithoutScrub, "without-scrub", false, "read nothing of the archive but what is restored")
	formerFlags(f, &o.Former)
	return c
}

// Inspect is `toban backup inspect`: the process in the container of a verification that runs SQL.
func Inspect() *cobra.Command {
	var o work.InspectOptions
	c := hidden(&cobra.Command{
		Use:   "inspect",
		Short: "Look through what `toban backup verify` has restored, and ask it the assertions",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Inspect(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Settings, "settings", filepath.Join(naming.PathBackup, naming.KeyBackup), "file with the settings")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory for the socket")
	f.StringVar(&o.Backup, "backup", "", "name of the backup in the archive")
	formerFlags(f, &o.Former)
	terminationFlag(f, &o.Termination, "file for the result")
	return c
}

// Copy is `toban backup copy`: the process in the container of a DatabaseRestore that runs the restored copy.
func Copy() *cobra.Command {
	var o work.CopyOptions
	c := hidden(&cobra.Command{
		Use:   "copy",
		Short: "Run a restored copy until `toban backup bring` has ended (in the Pod of a DatabaseRestore)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Copy(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Settings, "settings", filepath.Join(naming.PathRestore, naming.KeyBring), "file with the settings")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory for the socket")
	return c
}

// Bring is `toban backup bring`: the process in the container of a DatabaseRestore that connects to both servers.
func Bring() *cobra.Command {
	var o work.BringOptions
	c := hidden(&cobra.Command{
		Use:   "bring",
		Short: "Bring tables from a restored copy to the primary (in the Pod of a DatabaseRestore)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Bring(c.Context(), o) },
	})
	f := c.Flags()
	podFlags(f, &o.PodOptions, filepath.Join(naming.PathRestore, naming.KeyBring))
	f.StringVar(&o.Plan, "plan", filepath.Join(naming.PathConfig, naming.KeyInit), "file with the hosts")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the scratch volume")
	f.StringVar(&o.Copy, "copy", naming.PathCopy, "folder with the socket of the restored copy")
	return c
}

// Drill is `toban faultdrill`: the process in the Pod of a FaultDrill.
func Drill() *cobra.Command {
	var o work.DrillOptions
	c := hidden(&cobra.Command{
		Use:   "faultdrill",
		Short: "Write as applications do while something is broken (in the Pod of a FaultDrill)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Drill(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.App, "app", naming.PathApp, "folder with the application's credentials")
	f.StringVar(&o.Hosts, "hosts", "", "names of the instances, with commas between them")
	f.BoolVar(&o.Standbys, "standbys", false, "also read from standbys, and see how old that is")
	f.StringVar(&o.Schema, "schema", "", "schema to make for the rows; it is removed at the end")
	f.DurationVar(&o.Observe, "observe", 30*time.Second, "for how long to write")
	f.DurationVar(&o.AbortAfter, "abort-after", time.Minute, "how long a client may be without an acknowledged write")
	f.StringVar(&o.AbortWhen, "abort-when", "", "a query that says when to give up, by a true value")
	f.StringVar(&o.Probe, "probe", ":"+strconv.Itoa(naming.PortProbe), "where to answer the kubelet over HTTP")
	terminationFlag(f, &o.Termination, "file for the result")
	return c
}

// Image is `toban image`: the process in the Pod that looks into the image of a SampleDB.
func Image() *cobra.Command {
	var o work.ImageOptions
	c := hidden(&cobra.Command{
		Use:   "image",
		Short: "Say what is in the PostgreSQL image that this runs in (in a Pod of its own)",
		RunE:  func(c *cobra.Command, _ []string) error { return work.Image(c.Context(), o) },
	})
	f := c.Flags()
	f.IntVar(&o.Major, "major", 0, "major version of PostgreSQL")
	f.StringVar(&o.Termination, "termination-log", "/dev/termination-log", "file that takes the result")
	return c
}

// Archive is `toban archive`: what belongs to an archive on a volume.
func Archive() *cobra.Command {
	c := &cobra.Command{Use: "archive", Short: "Work on an archive that lies on a volume", Hidden: true}
	c.AddCommand(archiveServe())
	return c
}

// archiveServe is `toban archive serve`: the process in the Deployment NAME-archive.
func archiveServe() *cobra.Command {
	var o work.ArchiveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the objects in a folder to a SampleDB's instances and backups",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return work.ServeArchive(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Folder, "folder", naming.PathArchive, "the folder with the objects")
	authorityFlag(f, &o.Authority)
	f.StringVar(&o.Path, "path", "",
		"the SampleDB's archive in it: only that, and those of other major versions, may be written to")
	f.StringVar(&o.Listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to serve objects over HTTPS")
	f.StringVar(&o.Probe, "probe", ":"+strconv.Itoa(naming.PortProbe), "where to answer the kubelet over HTTP")
	return c
}

// Passwords is the verb of the Pod that reads the passwords of a PostgreSQL.
func Passwords() *cobra.Command {
	var o work.PasswordsOptions
	c := hidden(&cobra.Command{
		Use:   "passwords",
		Short: "Tell the operator the passwords of a PostgreSQL, sealed (its own Pod's command)",
		Long: "Reads the Secrets that are mounted, and leaves what is in them, sealed for the operator, " +
			"as the termination message: at once\n" +
			"where nothing is known yet, and otherwise as soon as it is something else than what is known. " +
			"A person has no need to run it.",
		RunE: func(c *cobra.Command, _ []string) error { return work.SendPasswords(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Secrets, "secrets", naming.PathPasswords, "folder with a folder for each Secret")
	f.StringVar(&o.Known, "known", naming.PathKnown, "file for the digest of what the operator has been told")
	f.StringVar(&o.SealFor, "seal-for", "", "the operator's public key")
	terminationFlag(f, &o.Termination, "file for the sealed passwords")
	return c
}

// Init is the verb of the init Job.
func Init() *cobra.Command {
	var o work.InitOptions
	c := hidden(&cobra.Command{
		Use:   "init",
		Short: "Set up the database of a new SampleDB (the init Job's own command)",
		Long: "Makes the application's role, database and extensions and runs the first SQL, each exactly once.\n" +
			"The init Job runs it; a person has no need to.",
		RunE: func(c *cobra.Command, _ []string) error { return work.Init(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Plan, "plan", filepath.Join(naming.PathConfig, naming.KeyInit), "file with what to do")
	authorityFlag(f, &o.Authority)
	f.StringVar(&o.App, "app", naming.PathApp, "folder with the application's credentials")
	terminationFlag(f, &o.Termination, "file for the result")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	f.DurationVar(&o.Patience, "patience", initPatience, "how long to wait for an instance that takes writes")
	return c
}

// Finish is the verb of the Job that does what is left after a change of the image.
func Finish() *cobra.Command {
	var o work.FinishOptions
	c := hidden(&cobra.Command{
		Use:   "finish",
		Short: "Do what is left in the databases after a change of the image (a Job's own command)",
		Long: "Makes missing statistics, rebuilds indexes that another library leaves out of order, and updates " +
			"extensions.\nThe Job NAME-finish runs it; a person has no need to.",
		RunE: func(c *cobra.Command, _ []string) error { return work.Finish(c.Context(), o) },
	})
	f := c.Flags()
	f.StringVar(&o.Plan, "plan", filepath.Join(naming.PathConfig, naming.KeyInit), "file with the hosts")
	authorityFlag(f, &o.Authority)
	terminationFlag(f, &o.Termination, "file for the result")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
	f.DurationVar(&o.Patience, "patience", initPatience, "how long to wait for an instance that takes writes")
	f.StringVar(&o.Parts, "parts", "Indexes", "what to do: Statistics, Indexes, Extensions, with commas between them")
	f.BoolVar(&o.UpdateExtensions, "update-extensions", false, "update extensions; else those that are older are named")
	return c
}

// podFlags are those of each process that works on an archive; the settings are in the file of this path.
func podFlags(f *pflag.FlagSet, o *work.PodOptions, settings string) {
	f.StringVar(&o.Settings, "settings", settings, "file with the settings")
	authorityFlag(f, &o.Authority)
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory for keys and the socket")
	f.StringVar(&o.Address, "address", os.Getenv("POD_IP"), "address that the operator reaches this Pod by")
	terminationFlag(f, &o.Termination, "file for the result")
	f.StringVar(&o.Listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to tell the operator how far it is")
}

// formerFlags say that a backup is of a former major version.
func formerFlags(f *pflag.FlagSet, into *work.Former) {
	f.StringVar(&into.Archive, "archive", "", "path of the archive, if it is that of a former major version")
	f.IntVar(&into.Major, "major", 0, "that major version of PostgreSQL")
}

func authorityFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
}

func terminationFlag(f *pflag.FlagSet, into *string, usage string) {
	f.StringVar(into, "termination-log", "/dev/termination-log", usage)
}
