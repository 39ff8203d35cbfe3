package process

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work"
	"toban.dev/internal/work/pod"
)

// initPatience is how long the init Job waits for a primary: longer than a slow
// volume and a slow image take together.
const initPatience = 10 * time.Minute

func takeFlags(f *pflag.FlagSet, o *work.TakeOptions) {
	archiveFlags(f, &o.Options)
	f.BoolVar(&o.Primary, "from-primary", false, "copy the primary, though there may be standbys")
	f.BoolVar(&o.Full, "full", false, "take a full backup, whatever the settings say")
	f.BoolVar(&o.Snapshot, naming.FlagSnapshot, false, "have a snapshot of the volume cut, and copy no data")
	f.BoolVar(&o.Prove, "prove", false, "read the backup with the key before it counts")
	f.StringVar(&o.Key, "key", naming.PathKey,
		"folder with the key of the archive, which an incremental backup needs, and one that is proved")
	f.StringVar(&o.Trigger, "trigger", naming.TriggerRequest, "why it is taken: schedule, request, migration or final")
	portFlag(f, &o.Port)
}

// archiveFlags are those of a process that works on the archive of its SampleDB.
func archiveFlags(f *pflag.FlagSet, o *pod.Options) {
	podFlags(f, o, filepath.Join(naming.PathBackup, naming.KeyBackup))
	f.TimeVar(&o.Asked, naming.FlagAsked, time.Time{}, []string{time.RFC3339},
		"when the Job was made, by the operator's clock")
	f.DurationVar(&o.Within, naming.FlagWithin, 0, "after how long Kubernetes ends the Job")
}

func keysFlags(f *pflag.FlagSet, o *work.KeysOptions) {
	keyFlag(f, &o.Key)
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory, for what the next container reads")
}

func restoreFlags(f *pflag.FlagSet, o *work.RestoreOptions) {
	podFlags(f, &o.Options, filepath.Join(naming.PathRestore, naming.KeyRestore))
	f.StringVar(&o.Source, "source", naming.PathSource,
		"folder with the authority of the SampleDB whose volume is read")
	keyFlag(f, &o.Key)
	f.StringVar(&o.Volume, "volume", naming.PathVolume, "the instance's volume")
	walVolumeFlag(f, &o.WALVolume)
}

func verifyFlags(f *pflag.FlagSet, o *work.VerifyOptions) {
	archiveFlags(f, &o.Options)
	keyFlag(f, &o.Key)
	scratchFlag(f, &o.Volume)
	f.StringVar(&o.Backup, "backup", "", "name of the backup in the archive")
	f.BoolVar(&o.WithoutScrub, "without-scrub", false, "read nothing of the archive but what is restored")
	formerFlags(f, &o.Former)
	o.Besides = besides
}

func inspectFlags(f *pflag.FlagSet, o *work.InspectOptions) {
	settingsFlag(f, &o.Settings, filepath.Join(naming.PathBackup, naming.KeyBackup))
	scratchFlag(f, &o.Volume)
	socketFlag(f, &o.Run)
	f.StringVar(&o.Backup, "backup", "", "name of the backup in the archive")
	formerFlags(f, &o.Former)
	terminationFlag(f, &o.Termination, "file for the result")
}

func imageFlags(f *pflag.FlagSet, o *work.ImageOptions) {
	f.IntVar(&o.Major, "major", 0, "major version of PostgreSQL")
	terminationFlag(f, &o.Termination, "file that takes the result")
}

func initFlags(f *pflag.FlagSet, o *work.InitOptions) {
	planFlag(f, &o.Plan, "file with what to do")
	authorityFlag(f, &o.Authority)
	f.StringVar(&o.App, "app", naming.PathApp, "folder with the application's credentials")
	terminationFlag(f, &o.Termination, "file for the result")
	portFlag(f, &o.Port)
	patienceFlag(f, &o.Patience)
	o.Unlink = unlink
}

func finishFlags(f *pflag.FlagSet, o *work.FinishOptions) {
	planFlag(f, &o.Plan, "file with the hosts")
	authorityFlag(f, &o.Authority)
	terminationFlag(f, &o.Termination, "file for the result")
	portFlag(f, &o.Port)
	patienceFlag(f, &o.Patience)
	f.StringVar(&o.Parts, "parts", "Indexes", "what to do: Statistics, Indexes, Extensions, with commas between them")
	f.BoolVar(&o.UpdateExtensions, "update-extensions", false, "update extensions; else those that are older are named")
}

// podFlags are those of each process that works on an archive; the settings are in the file of this path.
func podFlags(f *pflag.FlagSet, o *pod.Options, settings string) {
	settingsFlag(f, &o.Settings, settings)
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

// walVolumeFlag is where the WAL of an instance is.
func walVolumeFlag(f *pflag.FlagSet, volume *string) {
	f.StringVar(volume, naming.FlagWALVolume, "", "the volume that pg_wal is on (the same where it is empty)")
}

func settingsFlag(f *pflag.FlagSet, into *string, file string) {
	f.StringVar(into, "settings", file, "file with the settings")
}

func planFlag(f *pflag.FlagSet, into *string, usage string) {
	f.StringVar(into, "plan", filepath.Join(naming.PathConfig, naming.KeyInit), usage)
}

func keyFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "key", naming.PathKey, "folder with the key of the archive")
}

func scratchFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "volume", naming.PathVolume, "the scratch volume")
}

func socketFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "run", naming.PathRun, "folder in memory for the socket")
}

func portFlag(f *pflag.FlagSet, into *uint16) {
	f.Uint16Var(into, "port", naming.PortPostgreSQL, "port of the PostgreSQL servers")
}

func patienceFlag(f *pflag.FlagSet, into *time.Duration) {
	f.DurationVar(into, "patience", initPatience, "how long to wait for an instance that takes writes")
}

func authorityFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
}

func terminationFlag(f *pflag.FlagSet, into *string, usage string) {
	f.StringVar(into, "termination-log", "/dev/termination-log", usage)
}
